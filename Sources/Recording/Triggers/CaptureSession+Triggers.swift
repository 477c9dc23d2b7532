// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

extension CaptureSession {
  /// Adds an output that detects loud audio.
  ///
  /// - Parameters:
  ///   - audio: The threshold and the quiet period.
  ///   - handler: Called with each trigger, on a thread of the output.
  /// - Returns: The output. Remove it from the session to end the detection.
  /// - Throws: `MediaError` with `.notConnected` if the session has no audio.
  public func addTrigger(
    _ audio: AudioTrigger, handler: @escaping @Sendable (CaptureTrigger) -> Void
  ) throws(MediaError) -> any CaptureOutput {
    let listener = AudioDataOutput()
    try addOutput(listener)
    guard connections.contains(where: { $0.output === listener }) else {
      removeOutput(listener)
      throw MediaError(
        .notConnected, "audio triggers need audio, and the session has none",
        recovery: Recovery("choose a microphone", .change(.audioDevice), .listDevices))
    }
    let detector = Mutex(AudioTrigger.Detector(audio))
    listener.setSampleBufferHandler { block in
      for time in detector.withLock({ $0.hear(block) }) {
        handler(CaptureTrigger(source: .audio, microseconds: time))
      }
    }
    return listener
  }

  /// Adds an output that detects motion in the image.
  ///
  /// - Parameters:
  ///   - motion: The part of the image that must change, and the quiet period.
  ///   - handler: Called with each trigger, on a thread of the output.
  /// - Returns: The output. Remove it from the session to end the detection.
  /// - Throws: `MediaError` with `.codecRefused` for a codec that cannot be decoded.
  public func addTrigger(
    _ motion: MotionTrigger, handler: @escaping @Sendable (CaptureTrigger) -> Void
  ) throws(MediaError) -> any CaptureOutput {
    let watcher = VideoDataOutput()
    watcher.minFrameDuration = MotionTrigger.interval
    try addOutput(watcher)
    do throws(MediaError) {
      // The frames of H.264 depend on others. With settings, all of them are decoded.
      if !watcher.availablePixelFormats.contains(.gray) {
        try watcher.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
      }
    } catch {
      removeOutput(watcher)
      throw MediaError(
        .codecRefused, "motion triggers do not support the compression of this mode",
        recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
    }
    let detector = Mutex((motion: MotionTrigger.Detector(motion), gray: PixelBuffer(format: .gray)))
    watcher.setSampleBufferHandler { sample in
      guard
        let time = try? sample.presentationTimeStamp.converted(
          to: 1_000_000, rounding: .towardNegativeInfinity
        ).value
      else { return }
      let isMotion = detector.withLock { detector in
        // A damaged frame counts as no motion.
        guard (try? sample.convert(into: &detector.gray)) != nil else { return false }
        return detector.motion.see(detector.gray, at: time)
      }
      if isMotion { handler(CaptureTrigger(source: .motion, microseconds: time)) }
    }
    return watcher
  }
}
