// SPDX-License-Identifier: Apache-2.0

package import OvercrankALSA
public import OvercrankMediaCore

/// How a microphone gives its sound: the layout of a sample, the rate, and the channels.
///
/// The samples of all channels lie interleaved.
public struct AudioFormat: Hashable, Sendable, Identifiable {
  /// How a sample is stored, always with its low byte first; named as ALSA and FFmpeg do.
  public enum SampleFormat: String, Hashable, Sendable, CaseIterable {
    /// A whole number of 16 bits.
    case s16
    /// A whole number of 24 bits in 4 bytes, the highest of which says nothing.
    case s24
    /// A whole number of 24 bits in 3 bytes.
    case s24Packed = "s24_3"
    /// A whole number of 32 bits.
    case s32
    /// A floating-point number of 32 bits, between -1 and 1.
    case float

    /// Bytes from sample to sample of one channel.
    public var byteCount: Int { layout.byteCount }

    /// Bits that tell loud from quiet; 24 of a floating-point number's.
    var precision: Int {
      switch self {
      case .s16: 16
      case .s24, .s24Packed, .float: 24
      case .s32: 32
      }
    }

    /// The bridge's name of the same.
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

  /// How a sample is stored.
  public let sampleFormat: SampleFormat
  /// Samples a second of each channel.
  public let sampleRate: Int
  /// The number of channels.
  public let channelCount: Int

  /// Makes a format; rate and channels are at least one.
  public init(_ sampleFormat: SampleFormat, sampleRate: Int, channelCount: Int) {
    self.sampleFormat = sampleFormat
    self.sampleRate = max(1, sampleRate)
    self.channelCount = max(1, channelCount)
  }

  /// The format as it is written to choose it: `48000x2/s16`.
  public var id: String { "\(sampleRate)x\(channelCount)/\(sampleFormat.rawValue)" }

  /// Bytes of one sample of all channels.
  public var bytesPerSample: Int { sampleFormat.byteCount * channelCount }
}

extension CaptureDevice {
  /// Lists the formats of a microphone: every layout, number of channels and rate that go together.
  ///
  /// The device is opened for the moment, without changing anything.
  ///
  /// - Throws: `MediaError`: `.notACaptureDevice` for what gives no sound by itself, `.busy`
  ///   while another program records from it, `.notFound`, `.noPermission`, `.unplugged`.
  public func audioFormats() throws(MediaError) -> [AudioFormat] {
    guard case .alsa(let node) = source else {
      throw MediaError(
        .notACaptureDevice, "\(spokenName) is no microphone",
        recovery: Recovery("choose a microphone that is listed", .listDevices))
    }
    do throws(ALSAError) {
      let device = try AudioDevice(opening: node)
      var formats: [AudioFormat] = []
      for layout in try device.abilities().layouts {
        let counts = try device.abilities(choosing: AudioChoice(layout: layout)).channelCounts
        // A card of many channels gives each number of them; those in between are left out.
        for count in counts where count <= 8 || count == counts.upperBound {
          // Some numbers in the range may be none that the card has.
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
      throw MediaError(discovering: error)
    }
  }

  /// The format to record in unless another is asked for: 48000 samples a second or the rate
  /// nearest to it, two channels or the number nearest to that, and the most bits.
  ///
  /// - Throws: `MediaError` with `.noMatchingFormat` where there is none, and as
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
