// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankExport
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat

extension ClipComparison {
  /// Writes the movie in H.264 without audio.
  ///
  /// Each frame shows the time since the instant of alignment.
  ///
  /// Blocks the calling thread, which may be any. An unfinished file is removed.
  ///
  /// - Parameters:
  ///   - path: The file; its extension is `.mov`, `.mp4` or `.m4v`.
  ///   - overwrites: Whether an existing file is replaced.
  ///   - isCancelled: Polled between frames.
  ///   - progress: Called after each frame with the number of finished frames.
  /// - Returns: The plan that was carried out.
  /// - Throws: `MediaError` as ``plan()`` does, with `.outputExists`, `.cannotCreate`, `.diskFull`
  ///   or `.writeFailed` for the file, `.invalidData` for a frame that cannot be decoded, an error
  ///   of the logo's file, or `.cancelled`.
  @discardableResult
  public func write(
    to path: String, overwrites: Bool = false, isCancelled: () -> Bool = { false },
    progress: (_ done: Int) -> Void = { _ in }
  ) throws(MediaError) -> Plan {
    guard [".mov", ".mp4", ".m4v"].contains(where: path.lowercased().hasSuffix) else {
      throw MediaError(
        .cannotCreate, "the extension of \(path) does not name a supported container",
        recovery: "use the extension .mov, .mp4 or .m4v")
    }
    let plan = try plan()
    do {
      var file = try WholeFile(creating: path, overwrites: overwrites)
      try encode(plan, to: file.writtenPath, isCancelled, progress)
      try file.finish()
    } catch { throw Self.error(error, path) }
    return plan
  }

  private static func error(_ error: any Error, _ path: String) -> MediaError {
    switch error {
    case let error as MediaError: error
    case let error as FileCreationError: MediaError(error)
    case let error as LibAVError:
      MediaError(
        error.isDiskFull ? .diskFull : .writeFailed, "could not write \(path): \(error)",
        recovery: error.isDiskFull ? "free some space and try again" : "check the disk",
        cause: error.cause)
    default: MediaError(.writeFailed, "could not write \(path): \(error)")
    }
  }

  private func encode(
    _ plan: Plan, to path: String, _ isCancelled: () -> Bool, _ progress: (Int) -> Void
  ) throws {
    // Chooses a timescale, of about 24000 ticks per second or more, in which a frame is a whole
    // number of ticks.
    let factor = max(1, 24_000 / Int64(frameRate.numerator))
    let timescale = Int32(clamping: Int64(frameRate.numerator) * factor)
    let ticks = Int64(frameRate.denominator) * factor
    var settings = Encoder.VideoSettings(
      codec: "libx264", width: plan.size.width, height: plan.size.height, pixelFormat: .yuv420p,
      timescale: timescale)
    settings.frameRate = frameRate
    settings.colors = .convertedFromRGB
    settings.options = ["preset": "medium", "crf": "18"]
    var encoder = try Encoder(video: settings)
    let container: MovieContainer = path.lowercased().hasSuffix(".mov") ? .mov : .mp4
    var layout = MovieWriter.Settings(container: container, movieTimescale: timescale)
    let maps = writesTimeMap ? timeMaps(plan) : []
    let shown = plan.frames.indices.map { Int64($0) * ticks }
    if let map = maps.first {
      layout.metadata[TimeMapNote.key] =
        TimeMapNote(map, ticks: shown, timescale: timescale).text
    }
    var writer = try MovieWriter(path: path, settings: layout)
    _ = try writer.addTrack(encoder.parameters, timescale: timescale)
    try writer.begin()
    var converter = FrameConverter(to: .yuv420p, isFullRange: false)
    let readers = try ComparedFrames.open(clips, plan)
    let text = try burnIn.map {
      try ComparisonText($0, clips, plan, speed, isStacked: self.layout == .overlay)
    }
    for (slot, indices) in plan.frames.enumerated() {
      if isCancelled() {
        throw MediaError(
          .cancelled, "the comparison was cancelled",
          recovery: "start again; no file was left behind")
      }
      var canvas = Canvas(width: plan.size.width, height: plan.size.height)
      for (number, index) in indices.enumerated() {
        let image = try readers[number].image(at: index)
        if self.layout == .overlay, number > 0 {
          Self.blend(image, into: &canvas, share: 1 / Float(number + 1))
        } else {
          canvas.draw(image, x: plan.boxes[number].x, y: 0)
        }
      }
      label(slot, plan, on: &canvas)
      var frame = try converter.convert(canvas.frame())
      frame = try text?.draw(indices, on: frame) ?? frame
      try encoder.send(frame, at: Int64(slot) * ticks)
      while let packet = try encoder.nextPacket() { try Self.write(packet, to: &writer, ticks) }
      progress(slot + 1)
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { try Self.write(packet, to: &writer, ticks) }
    try writer.finish()
    guard !maps.isEmpty else { return }
    try TimeMapFile.attach(
      timeMapEntries(maps, plan), to: path, track: 0, ticks: shown, timescale: timescale,
      keepsNote: true)
  }

  private static func write(
    _ packet: Packet, to writer: inout MovieWriter, _ ticks: Int64
  ) throws(LibAVError) {
    let pts = packet.pts ?? 0
    try writer.write(packet, track: 0, pts: pts, dts: packet.dts ?? pts, duration: ticks)
  }

  /// Draws the real time since the instant of alignment.
  private func label(_ slot: Int, _ plan: Plan, on canvas: inout Canvas) {
    let scale = Canvas.textScale(forWidth: canvas.width)
    let step = frameRate.frameDuration.seconds * speed.fraction
    let real = plan.start + step * Rational(Int64(slot))
    let milliseconds = (try? (real * Rational(1_000)).rounded(.halfAwayFromZero)) ?? 0
    let text = (milliseconds < 0 ? "-" : "+") + "\(milliseconds.magnitude) ms"
    canvas.drawLabel(
      text, x: 4 * scale, y: canvas.height - Canvas.textHeight(scale: scale) - 4 * scale,
      scale: scale)
  }

  private static func blend(
    _ image: UprightFrames.Image, into canvas: inout Canvas, share: Float
  ) {
    guard image.width == canvas.width, image.height == canvas.height else { return }
    for index in canvas.bytes.indices {
      let (old, new) = (Float(canvas.bytes[index]), Float(image.bytes[index]))
      canvas.bytes[index] = UInt8(old + (new - old) * share)
    }
  }
}

/// The frames of one clip, scaled to the clip's rectangle in the comparison.
private final class ComparedFrames {
  private var frames: UprightFrames
  /// The last decoded image and the index of its frame: consecutive output frames often show the
  /// same image.
  private var last: (index: Int, image: UprightFrames.Image)?

  private init(_ asset: Asset, _ box: PixelBox) throws(MediaError) {
    frames = try UprightFrames(asset, isColor: true)
    frames.scale(toWidth: box.width, height: box.height)
  }

  static func open(
    _ clips: [ClipComparison.Clip], _ plan: ClipComparison.Plan
  ) throws(MediaError) -> [ComparedFrames] {
    var result: [ComparedFrames] = []
    for (clip, box) in zip(clips, plan.boxes) {
      result.append(try ComparedFrames(clip.asset, box))
    }
    return result
  }

  func image(at index: Int) throws(MediaError) -> UprightFrames.Image {
    if let last, last.index == index { return last.image }
    let image = try frames.image(at: index)
    last = (index, image)
    return image
  }
}
