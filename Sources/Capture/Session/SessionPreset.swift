// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// A preset that selects the modes of a session's cameras.
///
/// Corresponds to `AVCaptureSession.Preset`.
public enum SessionPreset: String, Hashable, Sendable, CaseIterable {
  /// The largest frame size, at any rate.
  ///
  /// Among equal sizes, the highest rate.
  case photo
  /// The largest frame size at 24 fps or more.
  ///
  /// Among equal sizes, the highest rate.
  case high
  /// The frame size nearest to 480x360, at its highest rate.
  case medium
  /// The frame size nearest to 192x144, at its highest rate.
  case low
  /// 640x480, at its highest rate.
  case vga640x480
  /// 1280x720, at its highest rate.
  case hd1280x720
  /// The mode with the highest rate, as `CaptureDevice.fastestFormat()` chooses it.
  case highFrameRate
  /// The mode that each input was created with or that `DeviceInput.setActiveFormat(_:frameRate:)`
  /// has set.
  case inputPriority

  /// Selects the mode for this preset, or nil if no mode matches.
  ///
  /// Emulated modes, modes that upscale the sensor image, and modes that a movie cannot store are
  /// never selected.
  public func format(among formats: [CaptureFormat]) -> CaptureFormat? {
    switch self {
    case .inputPriority: return nil
    case .highFrameRate: return FormatSelection.fastest(among: formats)
    case .vga640x480: return Self.fastest(of: (640, 480), among: formats)
    case .hd1280x720: return Self.fastest(of: (1280, 720), among: formats)
    case .medium: return Self.nearest(to: 480 * 360, among: formats)
    case .low: return Self.nearest(to: 192 * 144, among: formats)
    case .photo: return Self.nearest(to: .max, among: formats)
    case .high:
      let fluent = formats.filter { $0.maxFrameRate.framesPerSecond >= Rational(24) }
      return Self.nearest(to: .max, among: fluent) ?? Self.nearest(to: .max, among: formats)
    }
  }

  private static func fastest(
    of size: (width: Int, height: Int), among formats: [CaptureFormat]
  ) -> CaptureFormat? {
    FormatSelection.fastest(among: formats) { ($0.width, $0.height) == size }
  }

  /// The fastest mode with the frame size whose pixel count is nearest to `count`.
  private static func nearest(to count: Int, among formats: [CaptureFormat]) -> CaptureFormat? {
    // The pixel count of every real frame size fits 64 bits, so this difference does not overflow.
    func distance(_ format: CaptureFormat) -> Int { abs(count - format.width * format.height) }
    // `FormatSelection.fastest` never selects an emulated or otherwise unsuitable mode. Given a
    // single mode, it returns nil if that mode is unsuitable.
    let usable = formats.filter { FormatSelection.fastest(among: [$0]) != nil }
    guard let best = usable.min(by: { distance($0) < distance($1) }) else { return nil }
    return fastest(of: (best.width, best.height), among: usable)
  }
}

extension CaptureDevice {
  /// Whether the camera has a mode for a preset.
  ///
  /// The call lists the camera's formats, and returns false if that fails.
  public func supportsSessionPreset(_ preset: SessionPreset) -> Bool {
    guard media.contains(.video), let formats = try? formats() else { return false }
    return preset == .inputPriority || preset.format(among: formats) != nil
  }
}

extension CaptureSession {
  /// The preset for the cameras' modes.
  ///
  /// Default: ``SessionPreset/inputPriority``.
  public var sessionPreset: SessionPreset { latestGraph.preset }

  /// Whether every camera of the session has a mode for a preset.
  ///
  /// Blocks while the cameras report their modes.
  public func canSetSessionPreset(_ preset: SessionPreset) -> Bool {
    latestGraph.cameras.allSatisfy { $0.supports(preset) }
  }

  /// Sets all cameras to modes of a preset, including cameras that are added later.
  ///
  /// Modes that were set with `DeviceInput.setActiveFormat(_:frameRate:)` take effect again with
  /// ``SessionPreset/inputPriority``.
  ///
  /// In a running session, cameras whose mode changes stop and start again. A movie that is being
  /// recorded ends, or continues, as with `DeviceInput.setActiveFormat(_:frameRate:)`. Between
  /// ``beginConfiguration()`` and `commitConfiguration()`, the change is deferred, and
  /// `commitConfiguration()` throws its errors.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` if a camera has no matching mode, or as
  ///   `DeviceInput.init(device:format:)` does. The previous configuration then stays in effect.
  public func setSessionPreset(_ preset: SessionPreset) throws(MediaError) {
    try change { graph throws(MediaError) in graph.preset = preset }
  }
}

extension CaptureSession {
  /// Sets a camera to a mode, and ends the preset.
  func setMode(_ mode: CameraMode, of input: DeviceInput) throws(MediaError) {
    try change { graph throws(MediaError) in graph.setMode(mode, of: input) }
  }
}

extension SessionGraph {
  /// The cameras whose mode must change, with their old and new modes.
  ///
  /// If the preset changed, all cameras are queried. Otherwise only new cameras and those that were
  /// set explicitly are queried: a previous camera may be missing temporarily, and its error must
  /// not reject the change.
  func modeChanges(since before: SessionGraph) throws(MediaError) -> [ModeChange] {
    var changes: [ModeChange] = []
    for input in cameras {
      let isNew = !before.inputs.contains { $0 === input }
      guard isNew || preset != before.preset || explicitMode(of: input) != nil else { continue }
      let mode = try mode(of: input)
      if mode != input.mode {
        changes.append(ModeChange(input: input, before: input.mode, after: mode))
      }
    }
    return changes
  }

  /// The mode that the graph requires of a camera.
  private func mode(of input: DeviceInput) throws(MediaError) -> CameraMode {
    if preset == .inputPriority { return explicitMode(of: input) ?? input.chosenMode }
    let formats = try input.knownFormats()
    guard input.canReopen, let format = preset.format(among: formats) else {
      throw input.hasNoMode(for: preset)
    }
    return format.id == input.format.id ? input.mode : CameraMode(format, format.maxFrameRate)
  }
}

/// A camera's change from one mode to another.
struct ModeChange {
  let input: DeviceInput
  let before: CameraMode
  let after: CameraMode
}

extension DeviceInput {
  /// Whether the camera has a mode for a preset.
  fileprivate func supports(_ preset: SessionPreset) -> Bool {
    guard preset != .inputPriority else { return true }
    guard canReopen, let formats = try? knownFormats() else { return false }
    return preset.format(among: formats) != nil
  }

  fileprivate func hasNoMode(for preset: SessionPreset) -> MediaError {
    MediaError(
      .badConfiguration, "\(device.address) has no mode for the preset \(preset.rawValue)",
      recovery: "choose another preset, or inputPriority")
  }
}
