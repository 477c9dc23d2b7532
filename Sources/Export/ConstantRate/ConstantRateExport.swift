// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRetiming
import Synchronization

/// Renders a composition at a constant rate.
///
/// Three threads, with short belts between them: one decodes, one converts and mixes, one encodes.
/// The caller's writes what comes off, and asks whether it is still wanted.
struct ConstantRateExport {
  let plan: ConstantRatePlan
  let assets: [Asset]
  let track: VideoTrack
  let settings: RenderSettings
  let undecodable: UndecodableFramePolicy
  let geometry: FrameGeometry

  /// Writes the frames.
  ///
  /// - Returns: The frames that could not be decoded, and how many slots were left out for it.
  func write(
    to output: inout ExportOutput, _ progress: (Int64, Int64) -> Void
  ) throws -> (undecodable: [ExportReport.UndecodableFrame], leftOut: Int64) {
    let work = FrameWork(
      plan: plan, assets: assets, geometry: geometry,
      colors: Encoder.ColorTags(track.format.parameters, storedAs: geometry.format),
      settings: settings, undecodable: undecodable)
    defer { work.stop() }
    guard case .ready(let parameters, let timescale, let ticksPerSlot)? = try output.next(of: work)
    else { throw MediaError.exportCancelled }
    try output.begin(parameters, timescale: timescale, isUpright: settings.appliesRotation)
    var done: Int64 = 0
    while let made = try output.next(of: work) {
      guard case .packet(let packet) = made else { continue }
      let pts = packet.pts ?? 0
      try output.write(packet, pts: pts, dts: packet.dts ?? pts, duration: ticksPerSlot)
      done += 1
      progress(done, plan.slots.count)
    }
    return (work.undecodable.withLock { $0 }, plan.slots.count - done)
  }
}

extension ExportOutput {
  fileprivate func next(of work: FrameWork) throws -> FrameWork.Encoded? {
    try work.encoded.next(isCancelled)
  }
}

/// The three threads; they share nothing but the belts.
private final class FrameWork: Sendable {
  enum Encoded: Sendable {
    case ready(CodecParameters, timescale: Int32, ticksPerSlot: Int64)
    case packet(Packet)
  }

  /// A part of a picture, as it comes from its source.
  private struct Part: Sendable {
    let frame: ConstantRatePlan.Frame?
    let picture: MediaFrame?
    let share: Float
    /// Above zero for the last part of a picture: how many slots show it.
    let count: Int64
    /// Whether the slots are left out, because a frame that they show cannot be decoded.
    var isLeftOut = false
  }

  private struct Painted: Sendable {
    /// Nil for slots that are left out.
    let picture: MediaFrame?
    let count: Int64
  }

  /// The frames that could not be decoded so far.
  let undecodable = Mutex<[ExportReport.UndecodableFrame]>([])

  let encoded = BoundedBlockingQueue<Encoded>(capacity: 64)
  private let decoded = BoundedBlockingQueue<Part>(capacity: 6)
  private let painted = BoundedBlockingQueue<Painted>(capacity: 3)
  private let group = DispatchGroup()
  private let plan: ConstantRatePlan
  private let assets: [Asset]
  private let geometry: FrameGeometry
  private let colors: Encoder.ColorTags
  private let settings: RenderSettings
  private let policy: UndecodableFramePolicy

  init(
    plan: ConstantRatePlan, assets: [Asset], geometry: FrameGeometry, colors: Encoder.ColorTags,
    settings: RenderSettings, undecodable policy: UndecodableFramePolicy
  ) {
    self.plan = plan
    self.assets = assets
    self.geometry = geometry
    self.colors = colors
    self.settings = settings
    self.policy = policy
    start("decode", decoded) { try $0.decode() }
    start("paint", painted) { try $0.paint() }
    start("encode", encoded) { try $0.encode() }
  }

  private func start<Element>(
    _ name: String, _ belt: BoundedBlockingQueue<Element>,
    _ body: @escaping @Sendable (FrameWork) throws -> Void
  ) {
    DispatchQueue(label: "export.\(name)").async(group: group) {
      do {
        try body(self)
        belt.end()
      } catch { belt.end(error) }
    }
  }

  /// Ends the work; what is made is thrown away.
  func stop() {
    decoded.stop()
    painted.stop()
    encoded.stop()
    group.waitShortly()
  }

  private func decode() throws {
    var wanted = assets.map { [Bool](repeating: false, count: $0.videoTrack?.frameCount ?? 0) }
    for item in plan.items {
      for case let frame? in item.parts.map(\.frame) { wanted[frame.source][frame.index] = true }
    }
    let readers = zip(assets, wanted).map { FrameSource($0, wanted: $1, policy) }
    defer { undecodable.withLock { $0 = readers.flatMap(\.failed) } }
    for (position, item) in plan.items.enumerated() {
      // Between two that are shown, slots may be left out: their times tell how long those are.
      let mayLeaveOut = policy == .skip && position > 0 && position < plan.items.count - 1
      var parts: [Part] = []
      for (number, part) in item.parts.enumerated() {
        let isLast = number == item.parts.count - 1
        var picture: MediaFrame?
        if let frame = part.frame {
          picture = try readers[frame.source].picture(at: frame.index, mayLeaveOut: mayLeaveOut)
          guard picture != nil else {
            parts = [Part(frame: nil, picture: nil, share: 0, count: item.count, isLeftOut: true)]
            break
          }
        }
        parts.append(
          Part(
            frame: part.frame, picture: picture, share: part.share,
            count: isLast ? item.count : 0))
      }
      for part in parts {
        guard decoded.put(part) else { return }
      }
    }
  }

  private func paint() throws {
    var painter = FrameRenderer(geometry, colors)
    var isMixing = false
    while case .element(let part) = try decoded.take() {
      guard !part.isLeftOut else {
        guard painted.put(Painted(picture: nil, count: part.count)) else { return }
        continue
      }
      let picture = try painter.paint(part.frame, part.picture)
      isMixing = isMixing || part.count == 0
      if isMixing { try painter.mix(picture, share: part.share) }
      guard part.count > 0 else { continue }
      let made = isMixing ? try painter.mixed() : picture
      isMixing = false
      guard painted.put(Painted(picture: made, count: part.count)) else { return }
    }
  }

  private func encode() throws {
    let rate = plan.slots.rate
    // Fine enough for players that round to a track's ticks, and each slot a whole number.
    let factor = max(1, (24_000 + Int64(rate.numerator) - 1) / Int64(rate.numerator))
    guard let timescale = Int32(exactly: Int64(rate.numerator) * factor) else {
      throw MediaError(
        .unsupportedSource, "a rate of \(rate) frames a second cannot be stored",
        recovery: "choose a rate such as 30")
    }
    var picture = Encoder.VideoSettings(
      codec: settings.encoding.encoderName, width: geometry.encoded.width,
      height: geometry.encoded.height, pixelFormat: geometry.format, timescale: timescale)
    picture.frameRate = rate
    picture.isFullRange = geometry.isFullRange
    picture.colors = colors
    picture.pixelAspect = geometry.pixelAspect
    settings.encoding.configure(&picture)
    var encoder = try Encoder(video: picture)
    let ticksPerSlot = Int64(rate.denominator) * factor
    guard
      encoded.put(
        .ready(encoder.parameters, timescale: timescale, ticksPerSlot: ticksPerSlot))
    else { return }
    var slot: Int64 = 0
    while case .element(let next) = try painted.take() {
      guard let picture = next.picture else {
        slot += next.count
        continue
      }
      for _ in 0..<next.count {
        // An encoder may take many pictures before it gives the first packet.
        if encoded.isStopped { return }
        try encoder.send(picture, at: slot * ticksPerSlot)
        slot += 1
        while let packet = try encoder.nextPacket() {
          guard encoded.put(.packet(packet)) else { return }
        }
      }
    }
    if encoded.isStopped { return }
    try encoder.send(nil)
    while !encoded.isStopped, let packet = try encoder.nextPacket() {
      guard encoded.put(.packet(packet)) else { return }
    }
  }
}

/// The pictures of one of several assets, opened when the first is asked for.
private final class FrameSource {
  private let asset: Asset
  private let wanted: [Bool]
  private let policy: UndecodableFramePolicy
  private var reader: FrameReader?

  init(_ asset: Asset, wanted: [Bool], _ policy: UndecodableFramePolicy) {
    self.asset = asset
    self.wanted = wanted
    self.policy = policy
  }

  /// The frames that could not be decoded.
  var failed: [ExportReport.UndecodableFrame] {
    (reader?.undecodableFrames ?? []).compactMap {
      try? ExportReport.UndecodableFrame(asset, $0)
    }
  }

  /// The picture of a frame; nil for one that cannot be decoded where it may be left out.
  func picture(at index: Int, mayLeaveOut: Bool) throws(MediaError) -> MediaFrame? {
    do throws(MediaError) { return try picture(at: index) } catch {
      guard policy == .skip, reader?.undecodableFrames.contains(index) == true else { throw error }
      return mayLeaveOut ? nil : try reader?.substitute(for: index)
    }
  }

  private func picture(at index: Int) throws(MediaError) -> MediaFrame {
    if reader == nil {
      // The encoder needs the other processors, and pictures that are decoded beside each other cost
      // more: all of H.264's 8 s of 1280x720@240 took 3.1 s of processor time by one thread and 4.0
      // by three. libav warns of more than 16, and takes no more by itself.
      reader = try FrameReader(
        asset, wanted: wanted, threadCount: min(16, max(1, Processors.count / 2)),
        undecodable: policy)
    }
    guard let picture = try reader?.picture(at: index) else {
      throw MediaError(.invalidData, "\(asset.path) holds no pictures", recovery: "give a movie")
    }
    return picture
  }
}
