// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat

/// The format of the samples that an input receives, and the codec that stores them.
///
/// The codec was checked to support the format.
enum AssetTrackSource: Sendable {
  case video(Video)
  /// PCM samples and the codec that stores them.
  case samples(AudioFormat, AudioCodec)
  /// Compressed audio, which is copied.
  case packets(SourceFormat.AudioPackets)

  struct Video: Sendable {
    var delivery: FrameDelivery
    var plan: VideoPipelinePlan
    var frameRate: FrameRate
    var headers: [UInt8]
    /// The greatest size in bytes of an appended frame.
    var largestFrame: Int
  }

  init(_ format: SourceFormat, _ settings: AssetWriterOutputSettings?) throws(MediaError) {
    switch (format.content, settings) {
    case (.video(let description, let frameRate, let headers), nil):
      self = .video(try Video(description, frameRate, headers, .passthrough))
    case (.video(let description, let frameRate, let headers), .video(let video)):
      self = .video(try Video(description, frameRate, headers, video))
    case (.samples(let format), nil):
      self = try .samples(format, Self.unchanged(format))
    case (.samples(let format), .audio(let codec)):
      self = .samples(format, codec)
    case (.packets(let packets), nil):
      self = .packets(packets)
    case (.packets(let packets), .audio(let codec)) where codec == packets.codec:
      self = .packets(packets)
    case (.packets(let packets), .audio(let codec)):
      throw MediaError(
        .codecRefused, "compressed audio cannot be encoded again: \(packets.codec) as \(codec)",
        recovery: "append PCM samples, or store the packets unchanged")
    case (.video, .audio), (.samples, .video), (.packets, .video):
      throw MediaError(
        .codecRefused, "the encoding is for another kind of media than the format",
        recovery: "choose .video for frames and .audio for audio")
    }
    try check()
  }

  /// Opens the encoder as a test, so that an unsupported format is rejected when the input is
  /// created.
  private func check() throws(MediaError) {
    do throws(CallFailure) {
      switch self {
      case .video(let video): _ = try video.makePipeline()
      case .samples(let format, let codec):
        guard (8_000...384_000).contains(format.sampleRate) else {
          throw CallFailure("store", "audio of \(format.sampleRate) Hz", code: -22)
        }
        _ = try TakeAudioEncoder(
          codec: codec, sampleRate: format.sampleRate, channelCount: format.channelCount)
      case .packets(let packets):
        guard (8_000...384_000).contains(packets.sampleRate),
          (1...64).contains(packets.channelCount), (1...65_536).contains(packets.samplesPerPacket)
        else { throw CallFailure("store", "audio of this format", code: -22) }
        _ = try CodecParameters(packets)
      }
    } catch {
      throw MediaError(
        .codecRefused, error.description, recovery: "choose another codec or format",
        cause: error.cause)
    }
  }

  /// The PCM codec that stores samples of this format bit for bit.
  private static func unchanged(_ format: AudioFormat) throws(MediaError) -> AudioCodec {
    switch format.sampleFormat {
    case .s16: .pcm
    case .s24, .s24Packed: AudioCodec(rawValue: "pcm_s24le")
    case .float: AudioCodec(rawValue: "pcm_f32le")
    case .s32:
      throw MediaError(
        .codecRefused, "PCM samples of 32 bits cannot be stored unchanged",
        recovery: "choose a codec, such as pcm_s24le")
    }
  }

  /// Creates the track of an input.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  func makeTrack() throws(CallFailure) -> any AssetWriterTrack {
    switch self {
    case .video(let video): try VideoAssetTrack(video)
    case .samples(let format, let codec): try SampleAssetTrack(format, codec)
    case .packets(let packets): PacketAssetTrack(packets)
    }
  }

  /// Creates the queue of an input whose source delivers in real time.
  ///
  /// - Throws: `MediaError` if the memory is unavailable.
  func makeQueue() throws(MediaError) -> FrameQueue {
    switch self {
    case .video(let video):
      return try FrameQueue(
        capacity: FrameQueue.byteCount(
          largestFrame: video.largestFrame, frameRate: video.frameRate),
        largestFrame: video.largestFrame)
    case .samples(let format, _):
      // The queue has space for four seconds of samples, and for blocks of up to one second.
      let second = max(4_096, format.bytesPerSample * format.sampleRate)
      return try FrameQueue(capacity: 4 * second, largestFrame: second)
    case .packets: return try FrameQueue(capacity: 1 << 22, largestFrame: 1 << 20)
    }
  }

  /// Whether appended bytes pass a quick check for truncation.
  func isWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
    switch self {
    case .video(let video):
      var check = video.delivery.integrityCheck
      return check.holds(bytes)
    case .samples(let format, _):
      return !bytes.isEmpty && bytes.count % format.bytesPerSample == 0
    case .packets: return !bytes.isEmpty
    }
  }

  /// The duration of appended PCM samples in seconds.
  ///
  /// Zero for other samples.
  func duration(of bytes: UnsafeRawBufferPointer) -> Rational {
    guard case .samples(let format, _) = self else { return 0 }
    return Rational(Int128(bytes.count / format.bytesPerSample), over: Int128(format.sampleRate))
  }

  /// Whether the codec parameters of the track are known before the first sample.
  var hasKnownHeaders: Bool {
    guard case .video(let video) = self, video.plan == .copy(.h264) else { return true }
    return !video.headers.isEmpty
  }

  /// Throws an error if the container of the file does not support this track.
  func check(container path: String) throws(MediaError) {
    guard MovieContainer(recording: path) == .mp4 else { return }
    switch self {
    case .video(let video): _ = try video.plan.checked(in: path)
    case .samples(_, let codec) where codec.isUncompressed:
      throw VideoPipelinePlan.refusal(of: "uncompressed audio", in: path)
    case .samples, .packets: break
    }
  }
}

extension AssetTrackSource.Video {
  fileprivate init(
    _ format: FormatDescription, _ frameRate: FrameRate, _ headers: [UInt8],
    _ video: VideoOutputSettings
  ) throws(MediaError) {
    guard [format.width, format.height].allSatisfy((1...65_535).contains),
      (0...(1 << 24)).contains(format.bytesPerRow)
    else {
      throw MediaError(
        .codecRefused,
        "frames of \(format.width)x\(format.height) with \(format.bytesPerRow) bytes per row "
          + "cannot be stored",
        recovery: "use the size of the frames, at most 65535")
    }
    let layout: FrameDelivery.Layout
    switch format.mediaSubType {
    case .codec(let codec): layout = .compressed(codec)
    case .pixels(let name):
      guard let pixelFormat = LibAVPixelFormat(name) else {
        throw MediaError(
          .codecRefused, "unknown pixel format \(name.rawValue)",
          recovery: "use an FFmpeg name, such as yuyv422, gray or nv12")
      }
      layout = .raw(pixelFormat, bytesPerRow: format.bytesPerRow)
    }
    do throws(CallFailure) {
      delivery = try FrameDelivery(layout: layout, width: format.width, height: format.height)
    } catch { throw MediaError(recording: error) }
    plan = try VideoPipelinePlan(video, for: delivery)
    self.frameRate = frameRate
    self.headers = headers
    // No pixel format has more than 8 bytes per pixel, and compressed frames are smaller. The size
    // was checked, so the product cannot overflow.
    largestFrame = max(4_096, max(format.width * 8, format.bytesPerRow) * format.height)
  }

  /// Opens the pipeline that stores the frames.
  func makePipeline() throws(CallFailure) -> any VideoPipeline {
    guard case .copy(let codec) = plan else {
      return try plan.makePipeline(for: delivery, frameRate: frameRate)
    }
    return try CopyPipeline(codec: codec, delivery: delivery, headers: headers)
  }
}

extension CodecParameters {
  convenience init(_ packets: SourceFormat.AudioPackets) throws(CallFailure) {
    try self.init(
      audioCodec: packets.codec.rawValue, sampleRate: packets.sampleRate,
      channelCount: packets.channelCount, frameSize: packets.samplesPerPacket,
      extradata: packets.headers)
  }
}

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
