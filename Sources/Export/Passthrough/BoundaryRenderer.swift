// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Encodes the frames between a cut and the copied packets as H.264 for the same track.
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
  private let undecodable: UndecodableFramePolicy

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

  private static func refusal(_ track: VideoTrack) -> String? {
    let parameters = track.format.parameters
    guard track.codec == .h264 else {
      // Encoded and copied frames in one track need parameter sets with different identifiers. HEVC
      // is refused because x265 3.5 always writes the identifier 0, which copied frames usually
      // use, too. No option of x265 changes this (source/encoder/entropy.cpp: codeVPS, codeSPS,
      // codePPS, codeSliceHeader).
      return track.codec == .hevc
        ? "HEVC frames cannot be encoded between copies, because libx265 gives all its parameter "
          + "sets the identifier 0, which the source already uses"
        : "only H.264 frames can be encoded between copies, and the source is \(track.codec)"
    }
    guard let headers = H264Headers(parameters), headers.freeIdentifier != nil else {
      return "the source's parameter sets cannot be read"
    }
    guard headers.profileName != nil else { return "libx264 does not support the source's profile" }
    guard !parameters.isInterlaced else { return "the source is interlaced" }
    guard !track.changesDescription else { return "the source's parameter sets change" }
    guard
      Encoder.nearestPixelFormat(to: parameters.pixelFormat, forCodec: "libx264")
        == parameters.pixelFormat
    else { return "libx264 does not support the format \(parameters.pixelFormat.name)" }
    return nil
  }

  /// Prepares the parameter sets for encoded and copied frames.
  ///
  /// - Throws: `CallFailure` if libx264 refuses the source's format.
  init(_ track: VideoTrack, crf: Int, _ undecodable: UndecodableFramePolicy) throws {
    let source = track.format.parameters
    guard let own = H264Headers(source), let number = own.freeIdentifier else {
      throw CallFailure("encode a cut of", "video without parameter sets", code: -22)
    }
    // The frames are encoded with times at the source's rate, not with their times in the
    // composition. The encoder's rate control depends on frame durations, so slow motion would
    // otherwise change the quality.
    let rate = track.nominalFrameRate ?? FrameRate(30)
    var settings = Encoder.VideoSettings(
      codec: "libx264", width: track.width, height: track.height,
      pixelFormat: source.pixelFormat, timescale: 30)
    settings.frameRate = try FrameRate(min(rate.framesPerSecond, Rational(1_000)))
    settings.isFullRange = source.isFullRange
    settings.colors = Encoder.ColorTags(source, storedAs: source.pixelFormat)
    settings.pixelAspect = source.pixelAspect
    settings.hasReorderedFrames = false
    settings.keyFrameInterval = Int(Int32.max)
    settings.options = [
      "preset": "medium", "crf": "\(crf)", "sc_threshold": "0",
      "profile": own.profileName ?? "high", "x264-params": "sps-id=\(number)",
    ]
    let encoder = try Encoder(video: settings)
    guard let made = H264Headers(encoder.parameters) else {
      throw CallFailure("encode a cut with", "libx264 without parameter sets", code: -22)
    }
    self.settings = settings
    self.undecodable = undecodable
    unitLengthSize = own.unitLengthSize
    headers = encoder.parameters.extradata
    parameters = try CodecParameters(source, extradata: own.adding(made).bytes)
  }

  /// Encodes frames of an asset as one packet for each frame; the first packet is a key frame.
  ///
  /// - Parameters:
  ///   - numbers: The frame indices in presentation order.
  ///   - asset: The asset of the frames.
  ///   - check: Called for each frame; throws an error to stop encoding.
  /// - Returns: The packets in presentation order, and the frames that could not be decoded.
  /// - Throws: `MediaError` if a frame cannot be decoded, `CallFailure` if it cannot be encoded.
  func packets(
    of numbers: [Int], _ asset: Asset, check: () throws -> Void
  ) throws -> (packets: [Packet], undecodable: [Int]) {
    var encoder = try Encoder(video: settings)
    guard encoder.parameters.extradata == headers else {
      throw CallFailure("encode a cut of", asset.path, code: -22)
    }
    // The plan expects one packet per frame, so an undecodable frame cannot be left out. The policy
    // `skip` therefore acts like `hold`, which encodes the nearest decodable frame instead.
    var reader = try FrameReader(asset, undecodable: undecodable == .stop ? .stop : .hold)
    var packets: [Packet] = []
    packets.reserveCapacity(numbers.count)
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
      try encoder.send(frame, at: Int64(position), asKeyFrame: position == 0)
      while let packet = try encoder.nextPacket() { packets.append(packet) }
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    return (try packets.map { try $0.lengthPrefixed(unitLengthSize) }, reader.undecodableFrames)
  }
}
