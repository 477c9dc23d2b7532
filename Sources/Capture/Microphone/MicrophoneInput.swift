// SPDX-License-Identifier: Apache-2.0
public import FormatDiscovery
import Synchronization

/// A microphone opened in one format, ready to deliver sound to a session's outputs.
///
/// ```swift
/// guard let microphone = CaptureDevice.defaultMicrophone else { return }
/// try session.addInput(MicrophoneInput(device: microphone))
/// ```
///
/// No other program can record from the device while the input lives.
public final class MicrophoneInput: CapturingInput {
  /// The device that was opened.
  public let device: CaptureDevice
  /// How its samples are given.
  public let format: AudioFormat
  private let driver: any SoundDriver
  private let counters = SoundCounters()

  /// Opens a microphone.
  ///
  /// - Parameters:
  ///   - device: One that gives sound.
  ///   - format: One of its ``FormatDiscovery/CaptureDevice/audioFormats()``; nil for that which
  ///     it prefers.
  /// - Throws: `CaptureError` when the device is busy, gone or not permitted, gives no sound, or
  ///   lacks the format.
  public convenience init(
    device: CaptureDevice, format: AudioFormat? = nil
  ) throws(CaptureError) {
    guard case .alsa(let node) = device.source else {
      throw CaptureError(
        .modeRefused, "\(device.path ?? device.id) is no microphone",
        hint: "see which there are with: slowmo devices")
    }
    let wanted: AudioFormat
    if let format {
      wanted = format
    } else {
      do throws(DiscoveryError) { wanted = try device.preferredAudioFormat() } catch {
        throw CaptureError(error)
      }
    }
    self.init(device: device, driver: try ALSADriver(node, wanted))
  }

  /// Joins a driver of any make to the device that it plays.
  package init(device: CaptureDevice, driver: any SoundDriver) {
    self.device = device
    format = driver.format
    self.driver = driver
  }

  /// One port, of sound.
  public var ports: [InputPort] { [InputPort(mediaType: .audio, audioFormat: format)] }

  /// Samples of each channel that arrived since the input was made.
  public var sampleCount: Int64 { counters.samples.load(ordering: .relaxed) }
  /// How often the card's buffer ran over because this program did not come in time.
  public var overrunCount: Int64 { counters.overruns.load(ordering: .relaxed) }
  /// How often the machine slept meanwhile.
  public var suspensionCount: Int64 { counters.suspensions.load(ordering: .relaxed) }
  /// Samples of each channel that were lost by both, to the nearest by the time stamps.
  public var lostSampleCount: Int64 { counters.lostSamples.load(ordering: .relaxed) }

  package func makeCapture(
    into connections: [CaptureConnection], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(CaptureError) -> any InputCapture {
    try RunningSound(
      driver, counters, into: connections.soundSinks, control: control, whenEnded: whenEnded)
  }
}
