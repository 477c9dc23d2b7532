// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// Prevents exposures longer than a frame, and restores all controls afterwards.
///
/// In low light, automatic exposure may exceed the frame duration, which lowers the frame rate. If
/// exposure is manual, the guard shortens it to less than a frame. It then switches off the dynamic
/// frame rate and wide dynamic range. The order matters because some cameras reject a control while
/// another control makes it inactive. The power-line setting is not changed.
///
/// A control that the camera lacks or rejects stays unchanged. Whether the rate holds is therefore
/// measured separately.
package final class ExposureGuard: Sendable {
  /// A reason why the frame rate may still drop.
  package enum Weakness: Hashable, Sendable {
    /// The camera may still lower its rate for longer exposures.
    case keepsDynamicFrameRate
    /// The manual exposure is longer than a frame and cannot be shortened.
    case keepsLongExposure
  }

  private struct State {
    /// The changed controls with their previous values, in the order of the changes.
    var changes: [(control: ControlID, before: Int64)] = []
    var weaknesses: Set<Weakness> = []
    var isManual = false
    /// The controls that could not be restored.
    var unrestored: [ControlID] = []
  }

  private let port: any ControlPort
  /// The longest permitted exposure, in V4L2 units of 100 µs.
  private let longestExposure: Int64
  private let state = Mutex(State())

  /// Creates a guard that limits the exposures of a camera to its frame duration.
  package init(_ port: any ControlPort, frameDuration: MediaTime) {
    self.port = port
    longestExposure = Self.longestExposure(in: frameDuration)
  }

  deinit { restore() }

  /// The longest exposure shorter than a frame, in units of 100 µs.
  static func longestExposure(in frameDuration: MediaTime) -> Int64 {
    let units = try? frameDuration.converted(
      to: ControlID.exposureTime.timescale ?? 1, rounding: .towardPositiveInfinity)
    return max(1, (units?.value ?? 1) - 1)
  }

  /// Whether the exposure duration was shortened.
  ///
  /// Some cameras accept the previous, longer duration only after their frame duration was
  /// lengthened again.
  package var hasShortenedExposure: Bool {
    state.withLock { $0.changes.contains { $0.control == .exposureTime } }
  }

  /// The reasons why the frame rate may still drop.
  package var weaknesses: Set<Weakness> { state.withLock { $0.weaknesses } }

  /// The names of the controls that the last ``restore()`` could not restore.
  package var unrestored: [String] { state.withLock { $0.unrestored.map(\.wellKnownName) } }

  /// Whether exposure is not manual yet and the camera supports manual exposure.
  package var canExposeManually: Bool {
    guard !state.withLock({ $0.isManual }), let isManual = isSetByHand, !isManual else {
      return false
    }
    return port.range(of: .automaticExposure)?.contains(ControlItem.exposureManual) == true
      && port.range(of: .exposureTime) != nil
  }

  /// Changes the controls that could lengthen frames.
  ///
  /// Exposure stays automatic unless ``willExposeManually()`` was called.
  package func apply() {
    state.withLock { state in
      state.weaknesses = []
      if state.isManual, !set(.automaticExposure, to: ControlItem.exposureManual, &state) {
        state.weaknesses.insert(.keepsDynamicFrameRate)
      }
      let isSetByHand = isSetByHand == true
      if isSetByHand { limitExposure(&state) }
      if port.range(of: .exposureMayLowerRate) != nil,
        !set(.exposureMayLowerRate, to: 0, &state), !isSetByHand
      {
        // While exposure is manual, the control for the dynamic frame rate has no effect, and some
        // cameras reject changes to it. A rejection is therefore a weakness only while exposure is
        // automatic.
        state.weaknesses.insert(.keepsDynamicFrameRate)
      }
      if port.range(of: .wideDynamicRange) != nil {
        _ = set(.wideDynamicRange, to: 0, &state)
      }
    }
  }

  /// Switches to manual exposure at the next ``apply()``.
  ///
  /// The duration is kept, but limited to less than a frame.
  package func willExposeManually() { state.withLock { $0.isManual = true } }

  /// Whether exposure is manual, or nil if the camera does not report it.
  private var isSetByHand: Bool? {
    (try? port.value(of: .automaticExposure)).map(ControlID.automaticExposure.isManual)
  }

  private func limitExposure(_ state: inout State) {
    // The range is read at this point, because some cameras change it with the frame rate.
    guard let range = port.range(of: .exposureTime),
      let exposure = try? port.value(of: .exposureTime), exposure > longestExposure
    else { return }
    guard let limit = range.largest(notAbove: longestExposure),
      set(.exposureTime, to: limit, &state)
    else {
      state.weaknesses.insert(.keepsLongExposure)
      return
    }
  }

  /// Sets a control and saves its previous value.
  ///
  /// Returns false if the camera rejects the value or changes it.
  private func set(_ control: ControlID, to value: Int64, _ state: inout State) -> Bool {
    guard let before = try? port.value(of: control) else { return false }
    if before == value { return true }
    // The previous value is saved before the request, because a failed request may still have
    // changed the control.
    if !state.changes.contains(where: { $0.control == control }) {
      state.changes.append((control, before))
    }
    guard (try? port.set(control, to: value)) != nil else { return false }
    return (try? port.value(of: control)) == value
  }

  /// Restores the previous values of all controls, in reverse order of their changes.
  package func restore() {
    state.withLock { state in
      state.unrestored = state.changes.reversed().filter { !giveBack($0.control, $0.before) }
        .map(\.control)
      state.changes = []
    }
  }

  private func giveBack(_ control: ControlID, _ before: Int64) -> Bool {
    // The request is repeated up to three times, because bus errors may be temporary.
    for _ in 0..<3 {
      if (try? port.value(of: control)) == before { return true }
      try? port.set(control, to: before)
    }
    return (try? port.value(of: control)) == before
  }
}
