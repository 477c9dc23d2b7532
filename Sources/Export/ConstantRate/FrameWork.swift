// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster
import OvercrankRetiming
import Synchronization

/// The three threads of a constant-rate export.
///
/// The threads exchange data only through queues.
final class FrameWork: Sendable {
  enum Encoded: Sendable {
    case ready(CodecParameters)
    /// The encoder collected a frame, and will return a single packet at the end.
    case collected
    /// A packet, and the time in ticks of the first frame that its encoder received.
    case packet(Packet, start: Int64)
  }

  /// One of the source frames that are blended to an output frame.
  private struct Part: Sendable {
    let frame: ConstantRatePlan.Frame?
    let image: MediaFrame?
    let share: Float
    /// The number of output frames that show the finished image.
    ///
    /// Zero for all but the last source frame of a blend.
    let count: Int64
    /// Whether the `count` output frames are skipped because a source frame cannot be decoded.
    var isLeftOut = false
  }

  private struct Painted: Sendable {
    /// The finished image; nil for skipped output frames.
    let image: MediaFrame?
    let count: Int64
    /// The last source frame that is part of the image; nil for a gap.
    var source: BurnInRenderer.Source?
  }

  /// A captured frame, before or after which frames are synthesized.
  private struct Captured: Sendable {
    let entry: InBetweenPlan.Entry
    /// The index of the frame's entry in the plan for synthesized frames.
    let number: Int
    /// The decoded image; nil for a gap in the composition.
    let image: MediaFrame?
    /// Whether the previous captured frame was decoded and playback continues from that frame.
    let isConnected: Bool
  }

  /// The statistics of all frames synthesized so far.
  let synthesized = Mutex(SynthesizedFrames())
  /// The contents of the output frames so far; empty unless frames are synthesized.
  let contents = Mutex<[TimeMapBuilder.Run]>([])
  /// The frames found so far that could not be decoded.
  let undecodable = Mutex<[ExportReport.UndecodableFrame]>([])

  let encoded = BoundedBlockingQueue<Encoded>(capacity: 64)
  private let decoded = BoundedBlockingQueue<Part>(capacity: 6)
  private let captured = BoundedBlockingQueue<Captured>(capacity: 4)
  private let painted = BoundedBlockingQueue<Painted>(capacity: 3)
  private let group = DispatchGroup()
  private let export: ConstantRateExport
  private let colors: Encoder.ColorTags
  private let flicker: FlickerRemoval?
  private let burnIn: BurnInRenderer?
  private let palette: ColorPalette?

  /// Starts the threads.
  init(
    _ export: ConstantRateExport, _ colors: Encoder.ColorTags, _ flicker: FlickerRemoval?,
    _ burnIn: BurnInRenderer?, _ palette: ColorPalette?
  ) {
    (self.export, self.colors, self.flicker) = (export, colors, flicker)
    (self.burnIn, self.palette) = (burnIn, palette)
    if let inBetweens = export.plan.inBetweens {
      start(captured) { try $0.decode(inBetweens.entries) }
      start(painted) { try $0.interpolate() }
    } else {
      start(decoded) { try $0.decode() }
      start(painted) { try $0.paint() }
    }
    start(encoded) { try $0.encode() }
  }

  private func start<Element>(
    _ queue: BoundedBlockingQueue<Element>,
    _ body: @escaping @Sendable (FrameWork) throws -> Void
  ) {
    ExportThread.start(in: group, failed: { queue.end($0) }) {
      do {
        try body(self)
        queue.end()
      } catch { queue.end(error) }
    }
  }

  /// Stops the threads and discards their results.
  func stop() {
    decoded.stop()
    captured.stop()
    painted.stop()
    encoded.stop()
    group.waitShortly()
  }

  /// Creates a reader of each asset for the frames that must be decoded.
  private func readers(of frames: [ConstantRatePlan.Frame?]) -> [FrameSource] {
    var requests = export.assets.map { _ in [Int]() }
    for case let frame? in frames { requests[frame.source].append(frame.index) }
    // The decoder gets only half of the processors, because the encoder uses the others at the same
    // time. Decoding on more threads also costs more CPU time: for 8 s of H.264 at 1280x720@240,
    // 3.1 s with one thread and 4.0 s with three. Above 16 threads, libav prints a warning.
    let threadCount = min(16, max(1, (export.processorCount ?? Processors.count) / 2))
    return zip(export.assets, requests).map {
      FrameSource(
        $0, requests: $1, export.undecodable, threadCount: threadCount,
        isStopped: { [encoded] in encoded.isStopped })
    }
  }

  private func decode(_ entries: [InBetweenPlan.Entry]) throws {
    let readers = readers(of: export.plan.frames)
    defer { undecodable.withLock { $0 = readers.flatMap(\.failed) } }
    var isAfterLoss = false
    for (position, entry) in entries.enumerated() {
      var image: MediaFrame?
      if let frame = entry.frame {
        // No motion is estimated across an undecodable frame. The frame before it is held.
        let mayLeaveOut = position > 0 && position < entries.count - 1 && entry.instants.isEmpty
        image = try readers[frame.source].mediaFrame(at: frame.index, mayLeaveOut: mayLeaveOut)
        guard image != nil else {
          isAfterLoss = true
          continue
        }
      }
      let isConnected = entry.isConnected && !isAfterLoss
      isAfterLoss = false
      let next = Captured(
        entry: entry, number: position, image: image, isConnected: isConnected)
      guard captured.put(next) else { return }
    }
  }

  private func interpolate() throws {
    var renderer = FrameRenderer(export.geometry, colors, flicker)
    let sequence = try renderer.sequence(export.settings, threadCount: export.processorCount)
    func put(_ output: FrameSequenceInterpolator.Output) -> Bool {
      synthesized.withLock { $0.append(output.confidence, count: output.count) }
      let shown = shown(output)
      contents.withLock { $0.append(TimeMapBuilder.Run(shown: shown, count: output.count)) }
      return painted.put(
        Painted(image: output.image, count: output.count, source: source(of: output.position)))
    }
    var mixer: ExposureMixer?
    if let exposures = export.plan.inBetweens?.exposures {
      mixer = ExposureMixer(exposures, try renderer.makeBlender())
    }
    func emit(_ output: FrameSequenceInterpolator.Output) throws -> Bool {
      try mixer?.add(output, put) ?? put(output)
    }
    while case .element(let next) = try captured.take() {
      let image = try renderer.paint(next.entry.frame, next.image)
      let input = FrameSequenceInterpolator.Input(
        image: image, time: next.entry.time, isConnected: next.isConnected,
        instants: next.entry.instants, number: next.number)
      guard try sequence.add(input, emit) else { return }
    }
    _ = try sequence.finish(emit)
  }

  /// Returns the content of an output frame.
  private func shown(_ output: FrameSequenceInterpolator.Output) -> TimeMapBuilder.Shown {
    let position = output.position
    guard let entries = export.plan.inBetweens?.entries,
      let older = entries[position.older].frame
    else { return .nothing }
    let content: TimeMap.Content
    if let confidence = output.confidence {
      content = .synthesized(confidenceTenths: SynthesizedFrames.tenths(of: confidence))
    } else if output.isMixed {
      content = .blended
    } else {
      return .frame(older)
    }
    return .between(
      older, entries[position.newer].frame ?? older, share: position.share ?? 0, content: content)
  }

  /// Returns the source of an output frame among captured ones; nil for a gap.
  private func source(
    of position: FrameSequenceInterpolator.Position
  ) -> BurnInRenderer.Source? {
    guard let entries = export.plan.inBetweens?.entries,
      let frame = entries[position.older].frame
    else { return nil }
    return BurnInRenderer.Source(
      number: frame.source,
      position: BurnInText.Position(
        frame.index, next: entries[position.newer].frame?.index, share: position.share))
  }

  private func decode() throws {
    let readers = readers(of: export.plan.frames)
    defer { undecodable.withLock { $0 = readers.flatMap(\.failed) } }
    let items = export.plan.items
    for (position, item) in items.enumerated() {
      // A skipped output frame is replaced by the previous one, which is shown until the next one
      // starts. The first output frame has no previous one and the last has no next one, so the
      // first and the last are never skipped.
      let mayLeaveOut =
        export.undecodable == .skip && position > 0 && position < items.count - 1
      var parts: [Part] = []
      for (number, part) in item.parts.enumerated() {
        let isLast = number == item.parts.count - 1
        var image: MediaFrame?
        if let frame = part.frame {
          image = try readers[frame.source].mediaFrame(at: frame.index, mayLeaveOut: mayLeaveOut)
          guard image != nil else {
            parts = [Part(frame: nil, image: nil, share: 0, count: item.count, isLeftOut: true)]
            break
          }
        }
        parts.append(
          Part(
            frame: part.frame, image: image, share: part.share,
            count: isLast ? item.count : 0))
      }
      for part in parts {
        guard decoded.put(part) else { return }
      }
    }
  }

  private func paint() throws {
    var renderer = FrameRenderer(export.geometry, colors, flicker)
    var isMixing = false
    while case .element(let part) = try decoded.take() {
      guard !part.isLeftOut else {
        guard painted.put(Painted(image: nil, count: part.count)) else { return }
        continue
      }
      let image = try renderer.paint(part.frame, part.image)
      isMixing = isMixing || part.count == 0
      if isMixing { try renderer.mix(image, share: part.share) }
      guard part.count > 0 else { continue }
      let made = isMixing ? try renderer.mixed() : image
      isMixing = false
      let source = part.frame.map { BurnInRenderer.Source($0) }
      guard painted.put(Painted(image: made, count: part.count, source: source)) else { return }
    }
  }

  private func encode() throws {
    let (plan, settings, geometry) = (export.plan, export.settings, export.geometry)
    let timing = try SlotTiming(plan.slots.rate, settings.encoding)
    var indexer = palette.map { PaletteRenderer($0) }
    var video = Encoder.VideoSettings(
      codec: settings.encoding.encoderName, width: geometry.encoded.width,
      height: geometry.encoded.height, pixelFormat: palette == nil ? geometry.format : .pal8,
      timescale: timing.timescale)
    video.frameRate = plan.slots.rate
    video.isFullRange = geometry.isFullRange
    video.colors = colors
    video.pixelAspect = geometry.pixelAspect
    // The packets depend on the number of threads, and the packets of a group must be the same on
    // every computer. A group is therefore encoded on one thread.
    video.threadCount = plan.groupLength != nil ? 1 : export.processorCount ?? 0
    settings.encoding.configure(&video, crf: export.crf)
    var encoder = try Encoder(video: video)
    guard encoded.put(.ready(encoder.parameters)) else { return }
    // Each encoder counts output frames from its own first frame.
    var (slot, start): (Int64, Int64) = (0, 0)
    var position = plan.rendered.lowerBound
    while case .element(let next) = try painted.take() {
      guard let image = next.image else {
        slot += next.count
        position += next.count
        continue
      }
      // Consecutive output frames with the same image and text are drawn and converted only once.
      var drawn: (lines: [String], image: MediaFrame)?
      for _ in 0..<next.count {
        // An encoder may receive many frames before it returns a packet, so each frame is followed
        // by a check whether the export was stopped.
        if encoded.isStopped { return }
        if slot == plan.groupLength {
          guard try finish(&encoder, start) else { return }
          encoder = try Encoder(video: video)
          start += timing.ticks(of: slot)
          slot = 0
        }
        let lines = try burnIn?.lines(for: next.source, slot: position) ?? []
        var made = drawn?.lines == lines ? drawn?.image : nil
        if made == nil {
          let image = try burnIn?.draw(lines, on: image) ?? image
          made = try indexer?.convert(image) ?? image
        }
        guard let made else { return }
        drawn = (lines, made)
        try encoder.send(made, at: timing.ticks(of: slot))
        slot += 1
        position += 1
        if settings.encoding.isOnePacket, !encoded.put(.collected) { return }
        while let packet = try encoder.nextPacket() {
          guard encoded.put(.packet(packet, start: start)) else { return }
        }
      }
    }
    _ = try finish(&encoder, start)
  }

  /// Passes on the last packets of an encoder.
  ///
  /// Returns false if the export was stopped.
  private func finish(_ encoder: inout Encoder, _ start: Int64) throws -> Bool {
    if encoded.isStopped { return false }
    try encoder.send(nil)
    while !encoded.isStopped, let packet = try encoder.nextPacket() {
      guard encoded.put(.packet(packet, start: start)) else { return false }
    }
    return !encoded.isStopped
  }
}
