// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPreview
@testable import OvercrankRecording

/// Outputs that decode an H.264 camera beside a movie that copies its stream.
@Suite(.serialized) struct DecodedStreamTests {
  private let scratch: Scratch
  private let clip: String
  private static let count = 240

  init() throws {
    scratch = try Scratch()
    clip = scratch.file("clip.mov")
    try MovieRecipe.constant(120, count: Int64(Self.count)).h264(gop: 30, reordered: false)
      .write(to: clip)
  }

  private func session(_ options: String = "") throws -> CaptureSession {
    let camera = try CaptureDevice.named("file:\(clip)\(options)")
    let format = try camera.fastestFormat()
    #expect(format.fourcc == .h264)
    return try CaptureSession(device: camera, format: format)
  }

  private func movie(_ name: String = "take.mov") -> MovieFileOutput {
    var settings = RecordingSettings(path: scratch.file(name))
    settings.video = .passthrough
    settings.overwrites = true
    return MovieFileOutput(settings: settings)
  }

  /// The packets of a movie's video.
  private func packets(_ path: String) throws -> [[UInt8]] {
    var demuxer = try Demuxer(opening: path)
    var packets: [[UInt8]] = []
    while let packet = try demuxer.nextPacket() {
      if demuxer.tracks[packet.trackIndex].kind == .video {
        packets.append(packet.withBytes { [UInt8]($0) })
      }
    }
    return packets
  }

  /// Checks that a take lost no frame, and has the bytes of a take without other outputs.
  private func checkCopy(_ report: RecordingReport) throws {
    #expect(report.ledger.stored == Int64(Self.count) && report.ledger.dropped == 0)
    let session = try session("?pace=max")
    let alone = movie("alone.mov")
    try session.addOutput(alone)
    _ = try alone.record()
    let taken = try packets(report.path)
    #expect(taken.count == Self.count)
    #expect(try taken == packets(alone.settings.path))
  }

  @Test(arguments: ["", "?pace=max"])
  func `A preview beside a copied stream costs no frame`(pace: String) throws {
    let session = try session(pace)
    let preview = try VideoPreview(session: session)
    let movie = movie()
    try session.addOutput(movie)
    let viewer = Viewer()
    let thread = try BlockingThread.started {
      // The newest frame waits for the view, also after the end. On a busy machine a take may end before
      // its first frame is decoded.
      var waits = 0
      while true {
        let isLast = viewer.isOver && (!viewer.frames.isEmpty || waits > 3_000)
        waits += 1
        if preview.waitForNextFrame(milliseconds: 20),
          let frame = try? preview.nextFrame(as: .gray)
        {
          viewer.note(Int(PaintedBlocks.number(in: frame.image)), frame.sequence)
        } else if isLast {
          break
        }
      }
    }
    defer { viewer.end() }
    let report = try movie.record()
    viewer.end()
    thread.join()
    try checkCopy(report)
    let frames = viewer.frames
    #expect(!frames.isEmpty)
    #expect(frames.allSatisfy { $0.number == Int($0.sequence) }, "\(frames)")
    #expect(frames.map(\.sequence) == frames.map(\.sequence).sorted())
    let ledger = preview.ledger
    #expect(ledger.isBalanced && ledger.delivered == Int64(frames.count))
    #expect(preview.arrivals.missingCount == 0)
  }

  @Test func `A data output with settings gets decoded frames`() async throws {
    let session = try session("?pace=max")
    let (images, own) = (VideoDataOutput(), VideoDataOutput())
    try images.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
    let movie = movie()
    for output in [images, own] { try await session.addOutput(output) }
    try await session.addOutput(movie)
    let numbers = Mutex<[Int]>([])
    let copied = Atomic<Int>(0)
    images.setSampleBufferHandler { sample in
      if let image = try? sample.pixelBuffer(as: .gray) {
        numbers.withLock { $0.append(Int(PaintedBlocks.number(in: image))) }
      }
    }
    own.setSampleBufferHandler { _ in copied.wrappingAdd(1, ordering: .relaxed) }
    let report = try await movie.record()
    try checkCopy(report)
    session.removeOutput(images)
    session.removeOutput(own)
    #expect(images.ledger.isBalanced && own.ledger.isBalanced)
    #expect(own.nativeFormat == nil && copied.load(ordering: .relaxed) > 0)
    let seen = numbers.withLock { $0 }
    #expect(!seen.isEmpty && seen == seen.sorted() && Set(seen).count == seen.count)
  }

  @Test func `A data output of a running session changes to decoded frames`() async throws {
    let session = try session()
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    var frames = output.frames.makeAsyncIterator()
    let first = try #require(await frames.next())
    #expect(first.formatDescription.mediaSubType == .codec(.h264))
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
    var next = try #require(await frames.next())
    while next.formatDescription.mediaSubType == .codec(.h264) {
      next = try #require(await frames.next())
    }
    let image = try next.pixelBuffer(as: .gray)
    #expect(Int(PaintedBlocks.number(in: image)) == Int(next.attachments.sequence))
    try output.setVideoSettings(nil)
    repeat {
      next = try #require(await frames.next())
    } while next.formatDescription.mediaSubType
      != .codec(.h264)
    await session.stopRunning()
  }

  @Test func `Decoding begins with the newest key frame`() throws {
    let (driver, feed, packets) = try decoding()
    for (number, bytes) in packets.enumerated() where number >= 20 {
      give(number, bytes, feed, driver)
    }
    feed.end(CaptureEnd())
    var (skipped, decoded): ([UInt32], [UInt32]) = ([], [])
    while !driver.hasEnded {
      guard let frame = try driver.dequeue(timeoutMilliseconds: 10) else { continue }
      if frame.isSkipped {
        #expect(frame.bytes.isEmpty)
        skipped.append(frame.observation.sequence)
      } else {
        #expect(frame.bytes.count == 128 * 32 * 3 / 2)
        decoded.append(frame.observation.sequence)
      }
    }
    driver.stop()
    // All packets wait when the first one is decoded, so only those from the newest key frame on are.
    #expect(skipped == Array(20..<210) && decoded == Array(210..<240))
  }

  @Test func `A stop does not wait for a consumer of decoded frames`() async throws {
    let session = try session("?pace=max")
    let output = VideoDataOutput()
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
    // The frames are not taken, so the camera waits.
    output.alwaysDiscardsLateVideoFrames = false
    try await session.addOutput(output)
    try await session.startRunning()
    while output.ledger.waiting == 0 { await Task.yield() }
    await session.stopRunning()
    #expect(!session.isRunning)
  }

  @Test func `A packet without an image is a damaged frame`() throws {
    let (driver, feed, packets) = try decoding()
    var fates: [UInt32: Bool] = [:]
    func drain(_ isDone: () -> Bool) throws {
      while !isDone() {
        guard let frame = try driver.dequeue(timeoutMilliseconds: 10) else { continue }
        #expect(!frame.isSkipped && fates[frame.observation.sequence] == nil)
        fates[frame.observation.sequence] = !frame.bytes.isEmpty
      }
    }
    for number in 0..<60 {
      // The bytes of frames 20 to 24 and of the last one are no NAL unit that a decoder knows.
      let isBroken = (20..<25).contains(number) || number == 59
      let bytes = isBroken ? [0, 0, 0, 1, 0xff, 0xff, 0xff] : packets[number]
      give(number, bytes, feed, driver)
      if !isBroken { try drain { fates[UInt32(number)] != nil } }
    }
    feed.end(CaptureEnd(stopReason: .stopped))
    try drain { driver.hasEnded }
    driver.stop()
    #expect(fates.count == 60 && driver.endReason == .stopped)
    #expect(fates.filter { !$0.value }.map(\.key).sorted() == [20, 21, 22, 23, 24, 59])
  }

  @Test func `Decoded frames have the exposure of their packets`() throws {
    let (driver, feed, packets) = try decoding()
    // The exposure time in units of 100 us, which changes between two packets that wait.
    func time(of number: Int) -> Int64 { number < 25 ? 80 : number < 26 ? 90 : 160 }
    for number in 0..<30 {
      var exposure = ExposureInForce()
      exposure.note(.exposureTime, time(of: number))
      give(number, packets[number], feed, driver, exposure)
    }
    feed.end(CaptureEnd(stopReason: .stopped))
    var count = 0
    while !driver.hasEnded {
      guard let frame = try driver.dequeue(timeoutMilliseconds: 10) else { continue }
      let ticks = time(of: Int(frame.observation.sequence))
      #expect(!frame.isSkipped && frame.exposure.duration == MediaTime(ticks, over: 10_000))
      count += 1
    }
    driver.stop()
    #expect(count == 30)
  }

  /// A decoder that has started, and the packets of the clip.
  private func decoding() throws -> (DecodingDriver, DecodingFeed, [[UInt8]]) {
    let driver = try DecodingDriver(
      ScriptedDriver([]), codec: .h264, largestPacket: 1 << 16,
      to: FrameDelivery(layout: .raw(.yuv420p, bytesPerRow: 0), width: 128, height: 32))
    let feed = try driver.makeFeed(CaptureControl())
    try driver.start(keeping: [])
    return (driver, feed, try annexBPackets())
  }

  private func give(
    _ number: Int, _ bytes: [UInt8], _ feed: DecodingFeed, _ driver: DecodingDriver,
    _ exposure: ExposureInForce = ExposureInForce()
  ) {
    bytes.withUnsafeBytes { bytes in
      var frame = DequeuedBuffer(
        FrameObservation(sequence: UInt32(number), microseconds: Int64(number) * 8_000),
        exposure: exposure, bytes: bytes, index: -1, driver: driver)
      _ = feed.take(&frame)
    }
  }

  private func annexBPackets() throws -> [[UInt8]] {
    var demuxer = try Demuxer(opening: clip)
    let track = try #require(demuxer.tracks.first { $0.kind == .video })
    var filter = try BitstreamFilter(named: "h264_mp4toannexb", parameters: track.parameters)
    var packets: [[UInt8]] = []
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.index else { continue }
      packets.append(try filter.filter(packet).withBytes { [UInt8]($0) })
    }
    return packets
  }
}

/// The frames that the thread of a viewer has seen.
private final class Viewer: Sendable {
  private let state = Mutex<(frames: [(number: Int, sequence: UInt32)], isOver: Bool)>(([], false))

  var frames: [(number: Int, sequence: UInt32)] { state.withLock { $0.frames } }
  var isOver: Bool { state.withLock { $0.isOver } }

  func note(_ number: Int, _ sequence: UInt32) {
    state.withLock { $0.frames.append((number, sequence)) }
  }
  func end() { state.withLock { $0.isOver = true } }
}
