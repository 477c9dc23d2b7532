// SPDX-License-Identifier: Apache-2.0
package import MediaTiming
import Synchronization
import V4L2

/// Keeps a camera from exposing longer than a frame lasts, and gives every control back.
///
/// In low light a camera that may choose exposes for longer, and its rate halves. What it may
/// choose is taken away in the order that cameras need (some refuse a control that another one
/// makes inactive): frame rate priority off, wide dynamic range off, then an exposure set by
/// hand kept below the frame duration. The power-line setting is the user's and stays.
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

  /// The `V4L2_CID_…` that matter here, with the names that V4L2 gives them.
  enum Control: UInt32, CaseIterable {
    case exposureAuto = 0x009A_0901
    case exposureAbsolute = 0x009A_0902
    case exposureAutoPriority = 0x009A_0903
    case wideDynamicRange = 0x009A_0915

    var name: String {
      switch self {
      case .exposureAuto: "auto_exposure"
      case .exposureAbsolute: "exposure_time_absolute"
      case .exposureAutoPriority: "exposure_dynamic_framerate"
      case .wideDynamicRange: "wide_dynamic_range"
      }
    }
  }

  /// The items of `V4L2_CID_EXPOSURE_AUTO`.
  private enum Mode {
    static let automatic: Int64 = 0
    static let manual: Int64 = 1
    static let shutterPriority: Int64 = 2
    static let aperturePriority: Int64 = 3
  }

  private struct State {
    /// What was changed, oldest first, and what it was before.
    var changes: [(control: Control, before: Int64)] = []
    var weaknesses: Set<Weakness> = []
    var isManual = false
    /// Controls that would not go back to what they were.
    var unrestored: [Control] = []
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
    let units = (try? frameDuration.converted(to: 10_000, rounding: .towardPositiveInfinity).value)
    return max(1, (units ?? 1) - 1)
  }

  /// Whether the exposure itself was shortened; some cameras take the old one back only at a
  /// frame duration that is as long.
  package var hasShortenedExposure: Bool {
    state.withLock { $0.changes.contains { $0.control == .exposureAbsolute } }
  }

  /// What may still lengthen frames.
  package var weaknesses: Set<Weakness> { state.withLock { $0.weaknesses } }

  /// The names of the controls that the last ``restore()`` could not give back.
  package var unrestored: [String] { state.withLock { $0.unrestored.map(\.name) } }

  /// Whether exposure can still be taken out of the camera's hands by ``willExposeManually()``.
  package var canExposeManually: Bool {
    guard !state.withLock({ $0.isManual }), let mode = try? value(of: .exposureAuto),
      mode == Mode.automatic || mode == Mode.aperturePriority
    else { return false }
    return range(of: .exposureAuto)?.contains(Mode.manual) == true
      && range(of: .exposureAbsolute) != nil
  }

  /// Takes what lengthens frames out of the camera's hands, but for the exposure itself.
  package func apply() {
    state.withLock { state in
      state.weaknesses = []
      if state.isManual, !set(.exposureAuto, to: Mode.manual, &state) {
        state.weaknesses.insert(.keepsDynamicFrameRate)
      }
      let mode = try? value(of: .exposureAuto)
      if mode == Mode.manual || mode == Mode.shutterPriority { limitExposure(&state) }
      if range(of: .exposureAutoPriority) != nil,
        !set(.exposureAutoPriority, to: 0, &state),
        mode != Mode.manual, mode != Mode.shutterPriority
      {
        // Some cameras refuse it where the exposure is set by hand, and it does nothing there.
        state.weaknesses.insert(.keepsDynamicFrameRate)
      }
      if range(of: .wideDynamicRange) != nil {
        _ = set(.wideDynamicRange, to: 0, &state)
      }
    }
  }

  /// From the next ``apply()`` on, sets the exposure by hand: as long as it was, or as long as a
  /// frame allows.
  package func willExposeManually() { state.withLock { $0.isManual = true } }

  private func limitExposure(_ state: inout State) {
    // The range is asked for now: some cameras' depends on the rate.
    guard let range = range(of: .exposureAbsolute),
      let exposure = try? value(of: .exposureAbsolute), exposure > longestExposure
    else { return }
    guard let limit = range.largest(notAbove: longestExposure),
      set(.exposureAbsolute, to: limit, &state)
    else {
      state.weaknesses.insert(.keepsLongExposure)
      return
    }
  }

  private func range(of control: Control) -> ControlRange? { port.range(of: control.rawValue) }

  private func value(of control: Control) throws(DeviceError) -> Int64 {
    try port.value(of: control.rawValue)
  }

  /// Sets a control and remembers what it was; false where the camera does not do it.
  private func set(_ control: Control, to value: Int64, _ state: inout State) -> Bool {
    let id = control.rawValue
    guard let before = try? port.value(of: id) else { return false }
    if before == value { return true }
    // Remembered first: a request that fails may have done its work all the same.
    if !state.changes.contains(where: { $0.control == control }) {
      state.changes.append((control, before))
    }
    guard (try? port.set(id, to: value)) != nil else { return false }
    return (try? port.value(of: id)) == value
  }

  /// Gives every control back as it was, the last one first.
  package func restore() {
    state.withLock { state in
      state.unrestored = state.changes.reversed().filter { !giveBack($0.control, $0.before) }
        .map(\.control)
      state.changes = []
    }
  }

  private func giveBack(_ control: Control, _ before: Int64) -> Bool {
    let id = control.rawValue
    // What a bus error spoils now may succeed a moment later.
    for _ in 0..<3 {
      if (try? port.value(of: id)) == before { return true }
      try? port.set(id, to: before)
    }
    return (try? port.value(of: id)) == before
  }
}
