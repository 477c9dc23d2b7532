// SPDX-License-Identifier: Apache-2.0
import Assets
import LibAV
import MediaTiming
import Retiming

/// Renders a composition at a constant rate: each slot shows the last frame that is due.
struct ConstantRateExport {
  let plan: ConstantRatePlan
  let assets: [Asset]
  let track: VideoTrack
  let settings: ExportSettings

  func write(to output: inout ExportOutput, _ progress: (Int64, Int64) -> Void) throws {
    var painter = try PicturePainter(track, plan.slots.rate, settings)
    try output.begin(painter.parameters, timescale: painter.timescale)
    let readers = assets.map(PictureSource.init)
    var slot: Int64 = 0
    // What no slot shows is left to the reader, which decodes it only where others need it.
    for item in plan.items where item.count > 0 {
      let picture =
        if let frame = item.frame {
          try painter.prepare(readers[frame.source].picture(at: frame.index))
        } else { try painter.black() }
      for _ in 0..<item.count {
        // An encoder may take many pictures before it gives the first packet.
        try output.checkCancelled()
        try painter.encode(picture, slot: slot) {
          try output.write($0, pts: $1, dts: $2, duration: $3)
        }
        slot += 1
        progress(slot, plan.slots.count)
      }
    }
    try painter.finish { try output.write($0, pts: $1, dts: $2, duration: $3) }
  }
}

/// The pictures of one of several assets, opened when the first is asked for.
private final class PictureSource {
  private let asset: Asset
  private var reader: FrameReader?

  init(_ asset: Asset) { self.asset = asset }

  func picture(at index: Int) throws(AssetError) -> MediaFrame {
    if reader == nil { reader = try FrameReader(asset) }
    guard let picture = try reader?.picture(at: index) else {
      throw AssetError(.invalidData, "\(asset.path) holds no pictures", hint: "give a movie")
    }
    return picture
  }
}

/// Converts and encodes the pictures of the slots.
private struct PicturePainter: ~Copyable {
  let parameters: CodecParameters
  let timescale: Int32
  private let ticksPerSlot: Int64
  private let picture: Encoder.PictureSettings
  private var encoder: Encoder
  private var converter: PictureConverter

  typealias Write = (_ packet: Packet, _ pts: Int64, _ dts: Int64, _ duration: Int64) throws -> Void

  init(_ track: VideoTrack, _ rate: FrameRate, _ settings: ExportSettings) throws {
    // Fine enough for players that round to a track's ticks, and each slot a whole number.
    let factor = max(1, (24_000 + Int64(rate.numerator) - 1) / Int64(rate.numerator))
    guard let timescale = Int32(exactly: Int64(rate.numerator) * factor) else {
      throw ExportError(
        .unsupportedSource, "a rate of \(rate) frames a second cannot be stored",
        hint: "choose a rate such as 30")
    }
    let source = track.format.parameters
    let format: PixelFormat =
      switch settings.codec {
      case .h264: .yuv420p
      case .mjpeg: source.pixelFormat.isWideChroma ? .yuvj422p : .yuvj420p
      case .ffv1: Encoder.nearestPixelFormat(to: source.pixelFormat, forCodec: "ffv1") ?? .yuv420p
      }
    var picture = Encoder.PictureSettings(
      codec: settings.codec.encoderName, width: track.width, height: track.height,
      pixelFormat: format, timescale: timescale)
    picture.frameRate = rate
    picture.isFullRange = format.isFullRange
    picture.colors = Encoder.ColorTags(source)
    picture.pixelAspect = source.pixelAspect
    switch settings.codec {
    case .h264:
      picture.options = ["preset": "medium", "crf": "\(settings.crf)"]
      // Halved colour needs even sides: an odd one gets its last row or column twice.
      picture.width += track.width % 2
      picture.height += track.height % 2
    case .mjpeg: picture.quantizer = 3
    case .ffv1: picture.options = ["level": "3"]
    }
    let encoder = try Encoder(picture: picture)
    self.timescale = timescale
    self.picture = picture
    ticksPerSlot = Int64(rate.denominator) * factor
    parameters = encoder.parameters
    // Some cameras change the size of their pictures; a track has one.
    converter = PictureConverter(
      to: format, isFullRange: format.isFullRange, width: track.width, height: track.height)
    self.encoder = consume encoder
  }

  mutating func prepare(_ frame: MediaFrame) throws -> MediaFrame {
    try converter.convert(frame).padded(width: picture.width, height: picture.height)
  }

  /// A picture of nothing.
  mutating func black() throws -> MediaFrame {
    let frame = try MediaFrame.picture(
      width: picture.width, height: picture.height, pixelFormat: .gray8)
    frame.planeData(0)?.update(repeating: 0, count: frame.bytesPerRow(0) * frame.height)
    var converter = PictureConverter(to: picture.pixelFormat, isFullRange: picture.isFullRange)
    return try converter.convert(frame)
  }

  mutating func encode(_ frame: MediaFrame, slot: Int64, _ write: Write) throws {
    try encoder.send(frame, at: slot * ticksPerSlot)
    try drain(write)
  }

  mutating func finish(_ write: Write) throws {
    try encoder.send(nil)
    try drain(write)
  }

  private mutating func drain(_ write: Write) throws {
    while let packet = try encoder.nextPacket() {
      let pts = packet.pts ?? 0
      try write(packet, pts, packet.dts ?? pts, ticksPerSlot)
    }
  }
}
