// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// Which mode the cameras of a session are set to; the counterpart of
/// `AVCaptureSession.Preset`.
public enum SessionPreset: String, Hashable, Sendable, CaseIterable {
  /// The largest picture at 24 frames a second or more; among equals the highest rate.
  case high
  /// The picture nearest to 480x360, at its highest rate.
  case medium
  /// The picture nearest to 192x144, at its highest rate.
  case low
  /// 640x480, at its highest rate.
  case vga640x480
  /// 1280x720, at its highest rate.
  case hd1280x720
  /// The mode with the highest rate, as `CaptureDevice.fastestFormat()` chooses it.
  case highFrameRate
  /// The mode that each input was made with.
  case inputPriority

  /// The mode to use out of those that a camera has; nil where it has none such.
  ///
  /// Modes that are emulated, larger than what comes in, or cannot be stored are never chosen.
  public func format(among formats: [CaptureFormat]) -> CaptureFormat? {
    switch self {
    case .inputPriority: return nil
    case .highFrameRate: return FormatSelection.fastest(among: formats)
    case .vga640x480: return Self.fastest(of: (640, 480), among: formats)
    case .hd1280x720: return Self.fastest(of: (1280, 720), among: formats)
    case .medium: return Self.nearest(to: 480 * 360, among: formats)
    case .low: return Self.nearest(to: 192 * 144, among: formats)
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

  /// The fastest mode of the size whose pixels are nearest in number.
  private static func nearest(to count: Int, among formats: [CaptureFormat]) -> CaptureFormat? {
    // Sides fit 32 bits, so that a difference of areas fits 64.
    func distance(_ format: CaptureFormat) -> Int { abs(count - format.width * format.height) }
    // What may be chosen at all is the selection's to say.
    let usable = formats.filter { FormatSelection.fastest(among: [$0]) != nil }
    guard let best = usable.min(by: { distance($0) < distance($1) }) else { return nil }
    return fastest(of: (best.width, best.height), among: usable)
  }
}

extension CaptureSession {
  /// Which mode the cameras are set to; ``SessionPreset/inputPriority`` unless set otherwise.
  public var sessionPreset: SessionPreset { state.withLock { $0.latest.preset } }

  /// Whether every camera of the session has a mode for a preset.
  ///
  /// The cameras are asked for their modes.
  public func canSetSessionPreset(_ preset: SessionPreset) -> Bool {
    let inputs = state.withLock { $0.latest.cameras }
    return inputs.allSatisfy { (try? $0.format(for: preset)) != nil }
  }

  /// Sets the cameras to modes of a preset, also those that are added later.
  ///
  /// In a session that runs, cameras whose mode changes stop and start again; a movie that is
  /// being recorded is finished first. Between `beginConfiguration()` and
  /// `commitConfiguration()` it waits for the latter, which then throws what is said here.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` where a camera has no such mode, or as
  ///   ``DeviceInput/init(device:format:)``; everything is then as it was.
  public func setSessionPreset(_ preset: SessionPreset) throws(MediaError) {
    try change { graph throws(MediaError) in graph.preset = preset }
  }
}

extension SessionGraph {
  /// The cameras whose mode is another than the preset's, with both: of those that come in, or of
  /// all where the preset is another one than before.
  ///
  /// The others are not asked: they may be gone just now, which is no reason to refuse a change.
  func formatChanges(since before: SessionGraph) throws(MediaError) -> [FormatChange] {
    var changes: [FormatChange] = []
    for input in cameras
    where preset != before.preset || !before.inputs.contains(where: { $0 === input }) {
      let format = try input.format(for: preset)
      if format.id != input.format.id {
        changes.append(FormatChange(input: input, before: input.format, after: format))
      }
    }
    return changes
  }
}

/// A camera that is to have another mode.
struct FormatChange {
  let input: DeviceInput
  let before: CaptureFormat
  let after: CaptureFormat
}

extension DeviceInput {
  /// The mode of a preset.
  fileprivate func format(for preset: SessionPreset) throws(MediaError) -> CaptureFormat {
    if preset == .inputPriority { return originalFormat }
    let formats = try knownFormats()
    guard canReopen, let format = preset.format(among: formats) else {
      throw MediaError(
        .badConfiguration, "\(device.address) has no mode for the preset \(preset.rawValue)",
        recovery: "choose another preset, or inputPriority")
    }
    return format
  }
}
