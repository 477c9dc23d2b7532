// SPDX-License-Identifier: Apache-2.0

package import OvercrankALSA
public import OvercrankMediaCore

/// The format of a microphone's samples: sample format, sample rate and number of channels.
///
/// The samples of all channels are interleaved.
public struct AudioFormat: Hashable, Sendable, Identifiable {
  /// The storage format of a sample, always little-endian, named as in ALSA and FFmpeg.
  public enum SampleFormat: String, Hashable, Sendable, CaseIterable {
    /// A signed 16-bit integer.
    case s16
    /// A signed 24-bit integer in the low 3 of 4 bytes.
    ///
    /// The highest byte is undefined.
    case s24
    /// A signed 24-bit integer in 3 bytes.
    case s24Packed = "s24_3"
    /// A signed 32-bit integer.
    case s32
    /// A 32-bit floating-point number from -1 to 1.
    case float

    /// The size of a sample of one channel, in bytes.
    public var byteCount: Int { layout.byteCount }

    /// The number of significant bits of a sample.
    ///
    /// A 32-bit floating-point number has 24.
    var precision: Int {
      switch self {
      case .s16: 16
      case .s24, .s24Packed, .float: 24
      case .s32: 32
      }
    }

    /// The corresponding sample format of the ALSA module.
    package var layout: SampleLayout {
      switch self {
      case .s16: .s16
      case .s24: .s24
      case .s24Packed: .s24Packed
      case .s32: .s32
      case .float: .float
      }
    }

    init(_ layout: SampleLayout) {
      switch layout {
      case .s16: self = .s16
      case .s24: self = .s24
      case .s24Packed: self = .s24Packed
      case .s32: self = .s32
      case .float: self = .float
      }
    }
  }

  /// The storage format of a sample.
  public let sampleFormat: SampleFormat
  /// The sample rate in hertz.
  public let sampleRate: Int
  /// The number of channels.
  public let channelCount: Int

  /// Creates a format.
  ///
  /// A sample rate or channel count below one is raised to one.
  public init(_ sampleFormat: SampleFormat, sampleRate: Int, channelCount: Int) {
    self.sampleFormat = sampleFormat
    self.sampleRate = max(1, sampleRate)
    self.channelCount = max(1, channelCount)
  }

  /// The text that selects the format, such as `48000x2/s16`.
  public var id: String { "\(sampleRate)x\(channelCount)/\(sampleFormat.rawValue)" }

  /// The size of one sample of all channels, in bytes.
  public var bytesPerSample: Int { sampleFormat.byteCount * channelCount }
}

extension CaptureDevice {
  /// Lists the formats of a microphone: all supported combinations of sample format, rate and
  /// channels.
  ///
  /// The call opens the device briefly without changing it.
  ///
  /// - Throws: `MediaError` with `.notACaptureDevice` for a device that is not a microphone,
  ///   `.deviceBusy` while another program records from it, `.deviceNotFound`, `.noPermission`,
  ///   `.deviceLost`.
  public func audioFormats() throws(MediaError) -> [AudioFormat] {
    guard case .alsa(let node) = source else {
      throw MediaError(
        .notACaptureDevice, "\(spokenName) is not a microphone",
        recovery: Recovery("choose a listed microphone", .listDevices))
    }
    do throws(CallFailure) {
      let device = try AudioDevice(opening: node)
      var formats: [AudioFormat] = []
      for layout in try device.abilities().layouts {
        let counts = try device.abilities(choosing: AudioChoice(layout: layout)).channelCounts
        // Cards with many channels may support every number of channels. Only numbers up to 8 and
        // the greatest number are listed.
        for count in counts where count <= 8 || count == counts.upperBound {
          // The card may not support every number of channels in the range that it reports. An
          // unsupported number is skipped.
          let choice = AudioChoice(layout: layout, channelCount: count)
          guard let rates = try? device.abilities(choosing: choice).rates else { continue }
          for rate in rates {
            formats.append(
              AudioFormat(AudioFormat.SampleFormat(layout), sampleRate: rate, channelCount: count))
          }
        }
      }
      return formats
    } catch {
      throw MediaError(error, at: .discovering)
    }
  }

  /// The default format for recording.
  ///
  /// It is the format with the rate nearest to 48,000 Hz. Among formats with that rate, the channel
  /// count nearest to two decides, then the most bits.
  ///
  /// - Throws: `MediaError` with `.noMatchingFormat` if no format is usable, or as
  ///   ``audioFormats()`` does.
  public func preferredAudioFormat() throws(MediaError) -> AudioFormat {
    func distance(_ format: AudioFormat) -> (Int, Int, Int, String) {
      (
        abs(format.sampleRate - 48_000), abs(format.channelCount - 2),
        -format.sampleFormat.precision, format.id
      )
    }
    guard let best = try audioFormats().min(by: { distance($0) < distance($1) }) else {
      throw MediaError(
        .noMatchingFormat, "\(spokenName) has no format that can be used",
        recovery: Recovery("choose another microphone", .listDevices))
    }
    return best
  }
}
