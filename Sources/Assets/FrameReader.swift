// SPDX-License-Identifier: Apache-2.0
package import LibAV

/// Reads single pictures of an asset, exactly, in any order; forward is fastest.
public struct FrameReader: ~Copyable {
  private let asset: Asset
  private let track: VideoTrack
  private var source: PacketSource
  /// The frame that decoding gives next, in order of presentation; nil when it is unknown.
  private var nextIndex: Int?

  /// Opens the asset's pictures.
  ///
  /// - Throws: `AssetError` with `.invalidData` for an asset without pictures that can be decoded.
  public init(_ asset: Asset) throws(AssetError) {
    guard let track = asset.videoTrack else { throw .invalid(asset.path, "holds no pictures") }
    let source = try PacketSource.open(asset, track.format)
    self.asset = asset
    self.track = track
    self.source = consume source
    nextIndex = 0
  }

  /// The picture of a frame by its number in order of presentation, from 0.
  ///
  /// - Throws: `AssetError` with `.outsideAsset` for a frame that is not there, `.invalidData`
  ///   for one that cannot be decoded.
  package mutating func picture(at index: Int) throws(AssetError) -> MediaFrame {
    guard track.frames.entries.indices.contains(index) else {
      throw AssetError(
        .outsideAsset, "\(asset.path) has no frame \(index)",
        hint: "its \(track.frameCount) frames are counted from 0")
    }
    if !isAhead(index) { try seek(to: index) }
    do throws(LibAVError) {
      while let frame = try source.nextFrame() {
        guard let ticks = frame.pts, let place = self.index(ofTicks: ticks) else { continue }
        nextIndex = place + 1
        if place == index { return frame }
        if place > index { break }
      }
    } catch { throw AssetError(error) }
    nextIndex = nil
    throw .invalid(asset.path, "has a frame \(index) that cannot be decoded")
  }

  /// Whether decoding on reaches a frame sooner than seeking to the key frame before it.
  private func isAhead(_ index: Int) -> Bool {
    guard let nextIndex, nextIndex <= index else { return false }
    return keyFrame(before: index) <= nextIndex || index - nextIndex < 8
  }

  /// The last key frame at or before a frame, in order of presentation.
  private func keyFrame(before index: Int) -> Int {
    var place = index
    while place > 0, !track.frames.entries[place].isKeyFrame { place -= 1 }
    return place
  }

  private mutating func seek(to index: Int) throws(AssetError) {
    let entry = track.frames.entries[keyFrame(before: index)]
    // A fresh file and decoder know nothing of before. The start needs no seeking, which some
    // containers cannot do.
    source = try PacketSource.open(asset, track.format)
    nextIndex = nil
    guard entry.decodeIndex > 0 else { return }
    do throws(LibAVError) {
      try source.demuxer.seek(
        track: track.format.index,
        toKeyFrameBefore: entry.ticks / track.frames.tickFactor + track.frames.originTicks)
    } catch { throw AssetError(error) }
  }

  private func index(ofTicks ticks: Int64) -> Int? {
    let (offset, overflow) = ticks.subtractingReportingOverflow(track.frames.originTicks)
    let (scaled, scaleOverflow) = offset.multipliedReportingOverflow(by: track.frames.tickFactor)
    guard !overflow, !scaleOverflow, let place = track.frames.lastIndex(atOrBefore: scaled),
      track.frames.entries[place].ticks == scaled
    else { return nil }
    return place
  }
}

/// The decoded frames of one track, from where its file was opened or sought to.
struct PacketSource: ~Copyable {
  var demuxer: Demuxer
  private var decoder: Decoder
  private let track: Int
  private var isDrained = false

  init(_ path: String, _ track: TrackFormat) throws(LibAVError) {
    let demuxer = try Demuxer(opening: path)
    let decoder = try Decoder(parameters: track.parameters, subject: path)
    self.demuxer = consume demuxer
    self.decoder = consume decoder
    self.track = track.index
  }

  /// The same with this room's error.
  static func open(_ asset: Asset, _ track: TrackFormat) throws(AssetError) -> PacketSource {
    do throws(LibAVError) {
      return try PacketSource(asset.path, track)
    } catch { throw AssetError(error) }
  }

  /// The next frame in order of presentation, or nil at the end.
  mutating func nextFrame() throws(LibAVError) -> MediaFrame? {
    while true {
      if let frame = try decoder.nextFrame() { return frame }
      if isDrained { return nil }
      let packet = try demuxer.nextPacket()
      // What was cut off with the file is no frame.
      if let packet, packet.trackIndex != track || packet.isCorrupt { continue }
      isDrained = packet == nil
      try decoder.send(packet)
    }
  }
}

/// Writes pictures as PNG files.
public struct PNGWriter: ~Copyable {
  private var converter = PictureConverter(to: .rgb24, isFullRange: true)

  /// Makes a writer; it may be used for pictures of any size.
  public init() {}

  /// The bytes of a frame as a PNG file, in RGB with 8 bits each.
  ///
  /// - Throws: `AssetError` as ``FrameReader`` does.
  public mutating func data(
    of index: Int, from reader: inout FrameReader
  ) throws(AssetError) -> [UInt8] {
    let picture = try reader.picture(at: index)
    do throws(LibAVError) {
      let frame = try converter.convert(picture)
      var encoder = try Encoder(
        picture: Encoder.PictureSettings(
          codec: "png", width: frame.width, height: frame.height, pixelFormat: .rgb24,
          timescale: 1))
      try encoder.send(frame)
      try encoder.send(nil)
      guard let packet = try encoder.nextPacket() else {
        throw LibAVError("encode", "a PNG picture", code: -22)
      }
      return packet.withBytes { [UInt8]($0) }
    } catch { throw AssetError(error) }
  }
}
