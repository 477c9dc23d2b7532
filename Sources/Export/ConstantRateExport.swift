// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import LibAV
import MediaTiming
import Retiming

/// Renders a composition at a constant rate: each slot shows the last frame that is due.
struct ConstantRateExport {
  private let composition: Composition
  private let asset: Asset
  private let track: VideoTrack
  private let rate: FrameRate
  private let settings: ExportSettings
  private let slots: FrameSlots

  init(
    _ composition: Composition, _ asset: Asset, _ track: VideoTrack, _ rate: FrameRate,
    _ settings: ExportSettings
  ) throws(ExportError) {
    self.composition = composition
    self.asset = asset
    self.track = track
    self.rate = rate
    self.settings = settings
    slots = try Self.slots(composition, rate, track.frames)
  }

  /// How many frames there will be, and when.
  static func slots(
    _ composition: Composition, _ rate: FrameRate, _ table: FrameTable
  ) throws(ExportError) -> FrameSlots {
    do throws(RetimingError) {
      // A tick is never zero, because a timescale is above zero.
      let tick = (try? Rational(1, Int128(table.timescale))) ?? .zero
      return try FrameSlots(
        duration: composition.duration.seconds, rate: rate, sourceTick: tick)
    } catch { throw ExportError(error) }
  }

  func write(
    to output: inout ExportOutput, _ report: inout ExportReport,
    _ progress: (Int64, Int64) -> Void
  ) throws {
    var painter = try Painter(track, rate, settings)
    try output.begin(painter.parameters, timescale: painter.timescale)
    var reader = try FrameReader(asset)
    var sampler = HoldSampler(slots)
    var slot: Int64 = 0
    var waiting: Int?
    func show(_ index: Int?, _ count: Int64) throws {
      guard let index else { return }
      guard count > 0 else {
        report.framesSkipped += 1
        return
      }
      let picture = try painter.prepare(reader.picture(at: index))
      for repeated in 0..<count {
        try painter.encode(picture, slot: slot) {
          try output.write($0, pts: $1, dts: $2, duration: $3)
        }
        slot += 1
        report.framesEncoded += 1
        if repeated > 0 { report.framesDuplicated += 1 }
        progress(slot, slots.count)
      }
    }
    for (index, time) in try shownFrames() {
      if let count = try sampler.next(time) { try show(waiting, count) }
      waiting = index
    }
    try show(waiting, sampler.finish())
    try painter.finish { try output.write($0, pts: $1, dts: $2, duration: $3) }
    report.duration = try MediaTime(slots.seconds(of: slots.count))
  }

  /// The frames of the source in the order in which the composition shows them, each with the
  /// instant from which on it is shown.
  private func shownFrames() throws -> [(index: Int, time: Rational)] {
    var shown: [(index: Int, time: Rational)] = []
    for segment in composition.segments {
      guard let mapping = segment.mapping else {
        throw ExportError(
          .unsupportedSource,
          "the composition has an empty part at \(segment.target.secondsText) s",
          hint: "fill it, or remove it")
      }
      guard var index = track.frames.index(at: mapping.source.start) else { continue }
      while index < track.frames.entries.count {
        let time = try track.frames.time(ofFrame: Int64(index))
        guard time < mapping.source.end else { break }
        // The frame that is on when the segment begins is shown from its beginning.
        let start = max(time.seconds, mapping.source.start.seconds)
        // Where speeds change within one frame it goes on, and is not shown anew.
        if shown.last?.index != index {
          shown.append((index, try mapping.targetSeconds(of: start)))
        }
        index += 1
      }
    }
    return shown
  }
}

/// Converts and encodes the frames of the slots.
private struct Painter: ~Copyable {
  let parameters: CodecParameters
  let timescale: Int32
  private let ticksPerSlot: Int64
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
    let encoderName = settings.codec.encoderName
    let source = track.format.parameters.pixelFormat
    let isVideo = settings.codec != .ffv1
    let format: PixelFormat =
      switch settings.codec {
      case .h264: .yuv420p
      case .mjpeg: .yuvj420p
      case .ffv1: Encoder.nearestPixelFormat(to: source, forCodec: encoderName) ?? .yuv420p
      }
    // Halved colour needs even sides; an odd one loses its last row or column.
    let size =
      isVideo ? (track.width & ~1, track.height & ~1) : (track.width, track.height)
    var picture = Encoder.PictureSettings(
      codec: encoderName, width: max(2, size.0), height: max(2, size.1), pixelFormat: format,
      timescale: timescale)
    picture.frameRate = rate
    picture.isFullRange = format.isFullRange
    picture.colors = Encoder.ColorTags(track.format.parameters)
    switch settings.codec {
    case .h264: picture.options = ["preset": "medium", "crf": "\(settings.crf)"]
    case .mjpeg: picture.quantizer = 3
    case .ffv1:
      picture.options = ["level": "3"]
      picture.keyFrameInterval = 1  // By default others lean on the coder state of the last.
    }
    let encoder = try Encoder(picture: picture)
    self.timescale = timescale
    ticksPerSlot = Int64(rate.denominator) * factor
    parameters = encoder.parameters
    converter = PictureConverter(
      to: format, isFullRange: format.isFullRange, width: picture.width, height: picture.height)
    self.encoder = consume encoder
  }

  mutating func prepare(_ frame: MediaFrame) throws -> MediaFrame { try converter.convert(frame) }

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
