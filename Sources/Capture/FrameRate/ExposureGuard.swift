// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// Keeps a camera from exposing longer than a frame lasts, and gives every control back.
///
/// In low light a camera that may choose exposes for longer, and its rate halves. What it may
/// choose is taken away in the order that cameras need (some refuse a control that another one
/// makes inactive): an exposure set by hand is kept below the frame duration, then frame rate
/// priority and wide dynamic range are off. The power-line setting is the user's and stays.
///
/// What a camera has not, or refuses, is left as it is: whether the rate holds is for the
/// measurement to say.
package final class ExposureGuard: Sendable {
  /// Why a rate may not hold although everything was tried.
  package enum Weakness: Hashable, Sendable {
    /// The camera may still lower its rate to expose for longer.
    case keepsDynamicFrameRate
    /// The exposure set by hand is longer than a frame, and cannot be shortened.
    case keepsLongExposure
  }

  private struct State {
    /// What was changed, oldest first, and what it was before.
    var changes: [(control: ControlID, before: Int64)] = []
    var weaknesses: Set<Weakness> = []
    var isManual = false
    /// Controls that would not go back to what they were.
    var unrestored: [ControlID] = []
  }

  private let port: any ControlPort
  /// The longest exposure, in the driver's units of 100 µs.
  private let longestExposure: Int64
  private let state = Mutex(State())

  /// Guards a camera whose controls are behind a port, for a frame duration.
  package init(_ port: any ControlPort, frameDuration: MediaTime) {
    self.port = port
    longestExposure = Self.longestExposure(in: frameDuration)
  }

  deinit { restore() }

  /// The longest whole number of 100 µs that is shorter than a frame.
  static func longestExposure(in frameDuration: MediaTime) -> Int64 {
    let units = try? frameDuration.converted(
      to: CameraControls.exposureTimescale, rounding: .towardPositiveInfinity)
    return max(1, (units?.value ?? 1) - 1)
  }

  /// Whether the exposure itself was shortened; some cameras take the old one back only at a
  /// frame duration that is as long.
  package var hasShortenedExposure: Bool {
    state.withLock { $0.changes.contains { $0.control == .exposureTime } }
  }

  /// What may still lengthen frames.
  package var weaknesses: Set<Weakness> { state.withLock { $0.weaknesses } }

  /// The names of the controls that the last ``restore()`` could not give back.
  package var unrestored: [String] { state.withLock { $0.unrestored.map(\.wellKnownName) } }

  /// Whether exposure can still be taken out of the camera's hands by ``willExposeManually()``.
  package var canExposeManually: Bool {
    guard !state.withLock({ $0.isManual }), let isManual = isSetByHand, !isManual else {
      return false
    }
    return port.range(of: .automaticExposure)?.contains(ControlItem.exposureManual) == true
      && port.range(of: .exposureTime) != nil
  }

  /// Takes what lengthens frames out of the camera's hands, but for the exposure itself.
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
        // Some cameras refuse it where the exposure is set by hand, and it does nothing there.
        state.weaknesses.insert(.keepsDynamicFrameRate)
      }
      if port.range(of: .wideDynamicRange) != nil {
        _ = set(.wideDynamicRange, to: 0, &state)
      }
    }
  }

  /// From the next ``apply()`` on, sets the exposure by hand: as long as it was, or as long as a
  /// frame allows.
  package func willExposeManually() { state.withLock { $0.isManual = true } }

  /// Whether the duration of exposure is set by hand; nil where the camera does not say.
  private var isSetByHand: Bool? {
    (try? port.value(of: .automaticExposure)).map(ControlID.automaticExposure.isManual)
  }

  private func limitExposure(_ state: inout State) {
    // The range is asked for now: some cameras' depends on the rate.
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

  /// Sets a control and remembers what it was; false where the camera does not do it.
  private func set(_ control: ControlID, to value: Int64, _ state: inout State) -> Bool {
    guard let before = try? port.value(of: control) else { return false }
    if before == value { return true }
    // Remembered first: a request that fails may have done its work all the same.
    if !state.changes.contains(where: { $0.control == control }) {
      state.changes.append((control, before))
    }
    guard (try? port.set(control, to: value)) != nil else { return false }
    return (try? port.value(of: control)) == value
  }

  /// Gives every control back as it was, the last one first.
  package func restore() {
    state.withLock { state in
      state.unrestored = state.changes.reversed().filter { !giveBack($0.control, $0.before) }
        .map(\.control)
      state.changes = []
    }
  }

  private func giveBack(_ control: ControlID, _ before: Int64) -> Bool {
    // What a bus error spoils now may succeed a moment later.
    for _ in 0..<3 {
      if (try? port.value(of: control)) == before { return true }
      try? port.set(control, to: before)
    }
    return (try? port.value(of: control)) == before
  }
}
