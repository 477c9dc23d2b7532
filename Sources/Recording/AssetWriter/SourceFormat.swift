// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// The format of the samples that an ``AssetWriterInput`` receives.
///
/// It corresponds to AVFoundation's `sourceFormatHint`, but every input requires it, because
/// appended bytes contain no description of their format.
public struct SourceFormat: Hashable, Sendable {
  enum Content: Hashable, Sendable {
    case video(FormatDescription, FrameRate, headers: [UInt8])
    case samples(AudioFormat)
    case packets(AudioPackets)
  }

  /// The format of compressed audio.
  struct AudioPackets: Hashable, Sendable {
    var codec: AudioCodec
    var sampleRate: Int
    var channelCount: Int
    var samplesPerPacket: Int
    var headers: [UInt8]
  }

  let content: Content

  /// The format of video frames.
  ///
  /// - Parameters:
  ///   - format: The pixel format or the codec, and the size.
  ///   - frameRate: The nominal frame rate, which determines the duration of the last frame.
  ///   - headers: The parameter sets of compressed frames, as FFmpeg's `extradata`. If they are an
  ///     `avcC` record, the NAL units of H.264 frames begin with lengths instead of start codes.
  ///     Empty if the key frames contain the parameter sets, or the codec uses none.
  /// - Returns: The format.
  public static func video(
    _ format: FormatDescription, frameRate: FrameRate, headers: [UInt8] = []
  ) -> SourceFormat {
    SourceFormat(content: .video(format, frameRate, headers: headers))
  }

  /// The format of interleaved PCM samples.
  public static func audio(_ format: AudioFormat) -> SourceFormat {
    SourceFormat(content: .samples(format))
  }

  /// The format of compressed audio, which is appended one packet at a time.
  ///
  /// - Parameters:
  ///   - codec: The codec.
  ///   - sampleRate: The sample rate in hertz.
  ///   - channelCount: The number of channels.
  ///   - samplesPerPacket: The number of samples per channel that a packet decodes to.
  ///   - headers: The codec's headers, as FFmpeg's `extradata`: `AudioSpecificConfig` for AAC.
  /// - Returns: The format.
  public static func audio(
    codec: AudioCodec, sampleRate: Int, channelCount: Int, samplesPerPacket: Int = 1_024,
    headers: [UInt8] = []
  ) -> SourceFormat {
    SourceFormat(
      content: .packets(
        AudioPackets(
          codec: codec, sampleRate: sampleRate, channelCount: channelCount,
          samplesPerPacket: samplesPerPacket, headers: headers)))
  }

  /// The media type of the samples.
  public var mediaType: MediaType {
    if case .video = content { .video } else { .audio }
  }
}

/// The encoding that an ``AssetWriterInput`` stores.
public enum AssetWriterOutputSettings: Hashable, Sendable {
  /// The encoding of video frames.
  case video(VideoOutputSettings)
  /// The codec that encodes PCM samples: `aac`, `pcm`, or another of FFmpeg's encoders that the
  /// container supports, such as `pcm_s24le`.
  case audio(AudioCodec)
}
