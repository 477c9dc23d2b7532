// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Encodes the frames between a cut and the copied packets as H.264 or HEVC for the same track.
///
/// Encoded and copied frames need different parameter sets. Some decoders ignore parameter sets
/// inside the frames and use only those in the track's sample description. The sample description
/// therefore contains the parameter sets of both, with different identifiers, and each frame refers
/// to the right one.
struct BoundaryRenderer {
  /// The codec parameters of the track, with the parameter sets for encoded and for copied frames.
  let parameters: CodecParameters
  private let settings: Encoder.VideoSettings
  private let unitLengthSize: Int?
  private let headers: [UInt8]
  /// The identifier of the PPS that encoded frames of HEVC refer to; nil for H.264.
  private let frameSet: Int?
  private let undecodable: UndecodableFramePolicy

  /// The encoder fails, although it could be opened.
  struct EncoderFailure: Error {
    let cause: CallFailure
  }

  /// Returns the reason why frames of some assets cannot be encoded next to copied packets.
  ///
  /// Returns nil if they can be encoded.
  static func refusal(_ assets: [Asset]) -> String? {
    for asset in assets {
      guard let track = asset.videoTrack else { return "the source has no video" }
      if let reason = refusal(track) { return reason }
    }
    return nil
  }

  /// Returns the reason why the encoder cannot be opened for the frames of a track.
  ///
  /// Returns nil if it can be.
  static func openingFailure(_ track: VideoTrack) -> String? {
    do {
      _ = try BoundaryRenderer(track, crf: 18, .stop)
      return nil
    } catch {
      return "the encoder refuses the source's format"
    }
  }

  private static func refusal(_ track: VideoTrack) -> String? {
    let parameters = track.format.parameters
    let encoder = track.codec == .hevc ? "libx265" : "libx264"
    switch track.codec {
    case .h264:
      guard let headers = H264Headers(parameters), headers.freeIdentifier != nil else {
        return "the source's parameter sets cannot be read"
      }
      guard headers.profileName != nil else {
        return "libx264 does not support the source's profile"
      }
    case .hevc:
      guard let headers = HEVCHeaders(parameters), let format = headers.format else {
        return "the source's parameter sets cannot be read"
      }
      guard !headers.hasLayers else { return "the source has several layers, as spatial video" }
      guard headers.freeIdentifiers != nil else {
        return "the source uses all identifiers of parameter sets"
      }
      // Frames of other profiles of Dolby Vision have wrong colors without its metadata.
      guard [nil, 8].contains(track.dolbyVision?.profile) else {
        return "the source is Dolby Vision without a base that other players show"
      }
      guard format.isEncodable else { return "libx265 does not support the source's profile" }
    default:
      return "only H.264 and HEVC frames can be encoded between copies, and the source is "
        + "\(track.codec)"
    }
    guard !parameters.isInterlaced else { return "the source is interlaced" }
    guard !track.changesDescription else { return "the source's parameter sets change" }
    guard
      let format = Encoder.nearestPixelFormat(to: parameters.pixelFormat, forCodec: encoder)
    else { return "this FFmpeg has no \(encoder)" }
    guard format == parameters.pixelFormat else {
      return "\(encoder) does not support the format \(parameters.pixelFormat.name)"
    }
    return nil
  }

  /// Prepares the parameter sets for encoded and copied frames.
  ///
  /// - Throws: `CallFailure` if the encoder refuses the source's format.
  init(_ track: VideoTrack, crf: Int, _ undecodable: UndecodableFramePolicy) throws {
    let source = track.format.parameters
    // The frames are encoded with times at the source's rate, not with their times in the
    // composition. The encoder's rate control depends on frame durations, so slow motion would
    // otherwise change the quality.
    let rate = track.nominalFrameRate ?? FrameRate(30)
    var settings = Encoder.VideoSettings(
      codec: track.codec == .hevc ? "libx265" : "libx264", width: track.width,
      height: track.height, pixelFormat: source.pixelFormat, timescale: 30)
    settings.frameRate = try FrameRate(min(rate.framesPerSecond, Rational(1_000)))
    settings.isFullRange = source.isFullRange
    settings.colors = Encoder.ColorTags(source, storedAs: source.pixelFormat)
    settings.pixelAspect = source.pixelAspect
    settings.hasReorderedFrames = false
    let bytes: [UInt8]
    if track.codec == .h264 {
      let own = try Self.require(H264Headers(source))
      let number = try Self.require(own.freeIdentifier)
      settings.keyFrameInterval = Int(Int32.max)
      settings.options = [
        "preset": "medium", own.isLossless ? "qp" : "crf": own.isLossless ? "0" : "\(crf)",
        "sc_threshold": "0",
        "profile": own.profileName ?? "high", "x264-params": "sps-id=\(number)",
      ]
      headers = try Encoder(video: settings).parameters.extradata
      bytes = try Self.require(H264Headers(headers, unitLengthSize: nil).map(own.adding)).bytes
      (unitLengthSize, frameSet) = (own.unitLengthSize, nil)
    } else {
      let own = try Self.require(HEVCHeaders(source))
      let identifiers = try Self.require(own.freeIdentifiers)
      settings.options = try Self.require(own.format).encoderOptions(
        crf: own.isLossless ? nil : crf)
      headers = try Encoder(video: settings).parameters.extradata
      // libx265 gives all its parameter sets the identifier 0.
      bytes = try Self.require(
        HEVCHeaders(headers, unitLengthSize: nil)?.identified(by: identifiers, in: own).map(
          own.adding)
      ).bytes
      (unitLengthSize, frameSet) = (own.unitLengthSize, identifiers.frame)
    }
    self.settings = settings
    self.undecodable = undecodable
    parameters = try CodecParameters(source, extradata: bytes)
  }

  private static func require<Value>(_ value: Value?) throws(CallFailure) -> Value {
    guard let value else {
      throw CallFailure("encode a cut of", "video without parameter sets", code: -22)
    }
    return value
  }

  /// Encodes frames of an asset as one packet for each frame; the first packet is a key frame.
  ///
  /// - Parameters:
  ///   - numbers: The frame indices in presentation order.
  ///   - asset: The asset of the frames.
  ///   - check: Called for each frame; throws an error to stop encoding.
  /// - Returns: The packets in presentation order, and the frames that could not be decoded.
  /// - Throws: `MediaError` if a frame cannot be decoded, `EncoderFailure` if it cannot be encoded.
  func packets(
    of numbers: [Int], _ asset: Asset, check: () throws -> Void
  ) throws -> (packets: [Packet], undecodable: [Int]) {
    var encoder = try opened(for: asset)
    var packets: [Packet] = []
    packets.reserveCapacity(numbers.count)
    func encode(_ frame: MediaFrame?, at position: Int) throws(EncoderFailure) {
      do throws(CallFailure) {
        try encoder.send(frame, at: Int64(position), asKeyFrame: position == 0)
        while let packet = try encoder.nextPacket() { packets.append(try stored(packet)) }
      } catch { throw EncoderFailure(cause: error) }
    }
    // The plan expects one packet per frame, so an undecodable frame cannot be left out. The policy
    // `skip` therefore acts like `hold`, which encodes the nearest decodable frame instead.
    var reader = try FrameReader(asset, undecodable: undecodable == .stop ? .stop : .hold)
    for (position, number) in numbers.enumerated() {
      try check()
      let frame = try reader.mediaFrame(at: number)
      guard frame.width == settings.width, frame.height == settings.height,
        frame.pixelFormat == settings.pixelFormat
      else {
        throw MediaError(
          .unsupportedSource,
          "frame \(number) of \(asset.path) differs in size or format from its track",
          recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
      }
      try encode(frame, at: position)
    }
    try encode(nil, at: numbers.count)
    return (packets, reader.undecodableFrames)
  }

  private func opened(for asset: Asset) throws(EncoderFailure) -> Encoder {
    do throws(CallFailure) {
      let encoder = try Encoder(video: settings)
      guard encoder.parameters.extradata == headers else {
        throw CallFailure("encode a cut of", asset.path, code: -22)
      }
      return encoder
    } catch { throw EncoderFailure(cause: error) }
  }

  /// Returns a packet of the encoder as the track stores it.
  private func stored(_ packet: Packet) throws(CallFailure) -> Packet {
    guard let frameSet else { return try packet.lengthPrefixed(unitLengthSize) }
    return try packet.changingUnits(from: nil, to: unitLengthSize) {
      HEVCUnit.referring($0, to: frameSet)
    }
  }
}

extension HEVCHeaders.Format {
  /// Whether libx265 can encode frames of this format: the profiles Main and Main 10 and the range extensions.
  fileprivate var isEncodable: Bool {
    [1, 2, 3, 4].contains(profile) && (4...6).contains(treeBlock) && codingBlock <= 5
      && transformBlock <= 5 && lumaDepth == chromaDepth
  }

  /// The options with which libx265 encodes frames that a decoder can exchange for the source's.
  ///
  /// Equal block sizes give an equal coded size. Some decoders damage frames where they change. Without
  /// reordered frames, none waits in the decoder where copied frames follow.
  ///
  /// The scale of libx265's rate factor differs from libx264's, so that a lower one gives the same quality.
  /// Without a rate factor, frames are lossless.
  fileprivate func encoderOptions(crf: Int?) -> [String: String] {
    let parameters = [
      "log-level=none", "info=0", "keyint=-1", "open-gop=0", "scenecut=0", "bframes=0", "ref=1",
      "ctu=\(1 << treeBlock)", "min-cu-size=\(1 << codingBlock)",
      "max-tu-size=\(1 << transformBlock)",
    ]
    return [
      "preset": "superfast", "crf": "\(max(0, (crf ?? 0) - 8))",
      "x265-params": (parameters + (crf == nil ? ["lossless=1"] : [])).joined(separator: ":"),
    ]
  }
}
