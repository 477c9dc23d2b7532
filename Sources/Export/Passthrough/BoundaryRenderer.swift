// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Encodes the frames from a cut up to the first packet that can be copied, so that they can
/// stand in one track with those packets.
///
/// A track says once, beside its packets, what its decoder must know: the sets of parameters of
/// both kinds of pictures stand there, under numbers of their own. (Joined without that, a reader
/// that does not look for sets between the pictures decodes the one kind by the sets of the
/// other.)
struct BoundaryRenderer {
  /// What the track says of both kinds.
  let parameters: CodecParameters
  private let settings: Encoder.VideoSettings
  private let unitLengthSize: Int?
  private let headers: [UInt8]
  private let undecodable: UndecodableFramePolicy

  /// Why frames of a track cannot be encoded beside its own packets; nil where they can.
  static func refusal(_ track: VideoTrack?) -> String? {
    guard let track else { return "there are no pictures" }
    let parameters = track.format.parameters
    guard track.codec == .h264 else {
      // x265 3.5 writes each of the three numbers, and the one by which a slice names its set, as
      // a literal 0, and no option changes them (source/encoder/entropy.cpp: codeVPS, codeSPS,
      // codePPS, codeSliceHeader).
      return track.codec == .hevc
        ? "HEVC cannot be encoded beside copies yet, because libx265 gives all its parameter "
          + "sets the number 0, as most encoders do, and so they would take the place of the "
          + "source's own"
        : "only H.264 can be encoded beside copies, and this is \(track.codec)"
    }
    guard let headers = H264Headers(parameters), headers.freeIdentifier != nil else {
      return "its parameter sets cannot be read, so that no others can be put beside them"
    }
    guard headers.profileName != nil else { return "its profile is one that libx264 lacks" }
    guard !parameters.isInterlaced else { return "its pictures are interlaced" }
    guard
      Encoder.nearestPixelFormat(to: parameters.pixelFormat, forCodec: "libx264")
        == parameters.pixelFormat
    else { return "libx264 has no \(parameters.pixelFormat.name) pictures" }
    return nil
  }

  /// Prepares the headers for pictures of both kinds.
  ///
  /// - Throws: `LibAVError` for "open" when libx264 refuses the source's kind of picture.
  init(_ track: VideoTrack, crf: Int, _ undecodable: UndecodableFramePolicy) throws {
    let source = track.format.parameters
    guard let own = H264Headers(source), let number = own.freeIdentifier else {
      throw LibAVError("encode a cut of", "pictures without headers", code: -22)
    }
    // Time is counted in pictures: what the encoder makes of a slow one is not less.
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
      throw LibAVError("encode a cut with", "libx264, which gave no headers", code: -22)
    }
    self.settings = settings
    self.undecodable = undecodable
    unitLengthSize = own.unitLengthSize
    headers = encoder.parameters.extradata
    parameters = try CodecParameters(source, extradata: own.adding(made).bytes)
  }

  /// Encodes frames of an asset: a packet for each, the first of which needs no other.
  ///
  /// - Parameters:
  ///   - numbers: Frames in order of presentation.
  ///   - asset: Where they are from.
  ///   - check: Called for each; throws to end early.
  /// - Returns: The packets, in the same order, and the frames that could not be decoded.
  /// - Throws: `MediaError` for a frame that cannot be decoded, `LibAVError` for one that cannot
  ///   be encoded.
  func packets(
    of numbers: [Int], _ asset: Asset, check: () throws -> Void
  ) throws -> (packets: [Packet], undecodable: [Int]) {
    var encoder = try Encoder(video: settings)
    guard encoder.parameters.extradata == headers else {
      throw LibAVError("encode a cut of", asset.path, code: -22)
    }
    // Each frame needs its packet.
    var reader = try FrameReader(asset, undecodable: undecodable == .stop ? .stop : .hold)
    var packets: [Packet] = []
    packets.reserveCapacity(numbers.count)
    for (position, number) in numbers.enumerated() {
      try check()
      let picture = try reader.picture(at: number)
      guard picture.width == settings.width, picture.height == settings.height,
        picture.pixelFormat == settings.pixelFormat
      else {
        throw MediaError(
          .unsupportedSource,
          "the frame \(number) of \(asset.path) is of another size or kind than its track says",
          recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
      }
      try encoder.send(picture, at: Int64(position), asKeyFrame: position == 0)
      while let packet = try encoder.nextPacket() { packets.append(packet) }
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    return (try packets.map { try $0.lengthPrefixed(unitLengthSize) }, reader.undecodableFrames)
  }
}
