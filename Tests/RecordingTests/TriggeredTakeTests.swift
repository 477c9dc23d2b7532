// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

struct TriggeredTakeTests {
  /// Frames with losses and damage.
  ///
  /// The sequence number of each is its frame number.
  private func frames(
    _ count: Int, _ camera: ScriptedCamera, _ random: inout SeededGenerator
  ) throws -> [FrameObservation] {
    try (0..<count).compactMap { number in
      guard Int.random(in: 0..<200, using: &random) > 0 else { return nil }
      var frame = try camera.observation(Int64(number))
      frame.arrival += 500
      if Int.random(in: 0..<200, using: &random) == 0 { frame.outcome = .corrupt }
      return frame
    }
  }

  private func take(
    _ camera: ScriptedCamera, _ settings: TriggerSettings, in scratch: Scratch,
    configure: (inout RecordingSettings) -> Void = { _ in }
  ) throws -> TriggeredTake {
    var recording = RecordingSettings(path: scratch.file("clip.mov"))
    recording.recordsAudio = false
    configure(&recording)
    let input = try #require(
      try camera.session(ScriptedDriver([])).inputs.first as? DeviceInput)
    let control = CaptureControl()
    control.switchedOn.store(camera.base - 1_000, ordering: .relaxed)
    return TriggeredTake(
      TakeConfiguration(
        input: input, settings: recording,
        plan: try VideoPipelinePlan(recording.video, for: input.delivery), control: control,
        audio: nil, beginsWithStream: true), settings)
  }

  private func run(
    _ take: TriggeredTake, _ ring: ScriptedRing,
    notify: (MovieFileOutput.TriggeredEvent) -> Void = { _ in }
  ) throws -> TriggeredReport {
    let pusher = try BlockingThread { ring.push() }
    defer { pusher.join() }
    return take.write(
      from: ring.queue, end: { CaptureEnd(stopReason: .duration) }, arm: { _ in },
      takeTriggers: { (ring.takeTriggers(), nil) }, notify: notify)
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func `Overlapping clips each have all frames around their trigger`(
    seed: UInt64
  ) throws {
    var random = SeededGenerator(seed: seed)
    let camera = try ScriptedCamera(240)
    let scratch = try Scratch()
    let count = 6_000
    let pre = Int64.random(in: 0...200_000, using: &random)
    let post = Int64.random(in: 1...150_000, using: &random)
    var settings = TriggerSettings(
      preDuration: MediaTime(microseconds: pre), postDuration: MediaTime(microseconds: post))
    settings.repeats = true
    settings.clipPath = { scratch.file("clip\($0).mov") }
    let frames = try frames(count, camera, &random)
    let end = camera.base + Int64(count) * 1_000_000 / 240
    // Some triggers are before the first frame. Some are so late that the capture ends before the
    // clip does.
    let triggers = (0..<250).map { _ in
      CaptureTrigger(
        source: .call, microseconds: Int64.random(in: camera.base - 50_000...end, using: &random))
    }.sorted { $0.microseconds < $1.microseconds }
    let take = try take(camera, settings, in: scratch)
    let queue = try take.makeRing()
    let ring = ScriptedRing(
      queue, frames, of: try camera.images([7]), triggers: triggers)
    let report = try run(take, ring)

    #expect(report.problem == nil)
    #expect(ring.refusals.load(ordering: .relaxed) == 0)
    // A simple reference compares every frame with every trigger.
    var expected: [[FrameObservation]] = []
    var stored: Set<UInt32> = []
    for trigger in triggers {
      let clip = frames.filter {
        $0.outcome == .taken && $0.microseconds >= trigger.microseconds - pre
          && $0.microseconds < trigger.microseconds + post
      }
      stored.formUnion(clip.map(\.sequence))
      if !clip.isEmpty { expected.append(clip) }
    }
    #expect(report.clips.count == expected.count)
    #expect(report.clips.count > 200)
    for (clip, expected) in zip(report.clips, expected) {
      #expect(clip.ledger.stored == Int64(expected.count))
      #expect(clip.ledger.isBalanced)
      #expect(clip.isPlayable)
      let mark = try #require(clip.trigger)
      let shown = expected.lastIndex { $0.microseconds <= mark.captureTime.wholeMicroseconds }
      #expect(mark.frameIndex == shown.map(Int64.init))
      let asset = try Asset(path: clip.path)
      let lines = asset.frameTimingRows()
      #expect(lines.map(\.sequence) == expected.map { Int64($0.sequence) })
      // The clip's trigger and earlier ones are marked, if the clip contains their instants.
      let own = mark.captureTime.wholeMicroseconds
      let first = expected[0].microseconds
      let inside = Set(triggers.map(\.microseconds)).filter {
        $0 >= max(first, own - pre) && $0 < min(own + post, first + clip.duration.wholeMicroseconds)
      }
      let marked = asset.marks.map { $0.time.wholeMicroseconds + first }
      #expect(inside.isSuperset(of: marked))
      #expect(inside.filter { $0 <= own }.isSubset(of: marked))
      let names = marked.indices.map { marked.count == 1 ? "trigger" : "trigger\($0 + 1)" }
      #expect(asset.marks.map(\.name) == names)
      #expect(
        lines.map(\.time.wholeNanoseconds)
          == expected.map {
            ($0.microseconds - expected[0].microseconds) * 1_000
          })
    }
    // The frame counts of the whole capture.
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == Int64(stored.count))
    let damaged = frames.count { $0.outcome == .corrupt }
    #expect(report.ledger.corrupt == Int64(damaged))
    #expect(report.ledger.evicted == Int64(frames.count - damaged - stored.count))
    #expect(report.ledger.lostQueue == 0)
    #expect(report.ringPeak <= report.ringCapacity)
    let marks = report.clips.compactMap { $0.trigger?.captureTime.wholeMicroseconds }
    let steps = zip(marks, marks.dropFirst()).map { $1 - $0 }
    #expect(steps.contains { $0 < 4_000 })
    print(
      "triggers: \(marks.count) clips of \((pre + post) / 1_000) ms, none lost a frame; "
        + "\(steps.count { $0 < pre + post }) of them while another was being written, the nearest "
        + "\(steps.min() ?? 0) us after the one before")
  }

  @Test func `A small ring buffer keeps the latest frames before a trigger`() throws {
    var random = SeededGenerator(seed: 9)
    let camera = try ScriptedCamera(240)
    let scratch = try Scratch()
    var settings = TriggerSettings(
      preDuration: MediaTime(seconds: 3), postDuration: MediaTime(microseconds: 100_000))
    settings.memoryLimit = 1 << 19
    let frames = try frames(1_200, camera, &random)
    let trigger = CaptureTrigger(source: .key, microseconds: camera.base + 4_000_000)
    let take = try take(camera, settings, in: scratch)
    let queue = try take.makeRing()
    // The ring consists of whole chunks, of a frame each.
    #expect((0..<take.input.maximumByteCount).contains((1 << 19) - queue.capacity))
    let ring = ScriptedRing(queue, frames, of: try camera.images([7]), triggers: [trigger])
    let report = try run(take, ring)
    let clip = try #require(report.clips.first)
    #expect(ring.refusals.load(ordering: .relaxed) == 0)
    #expect(clip.ledger.lostQueue == 0)
    let mark = try #require(clip.trigger)
    // The clip has less than the requested duration, but nearly everything that fits in memory.
    #expect(mark.time.wholeNanoseconds < 2_900_000_000)
    #expect(queue.capacity <= 1 << 19)
    #expect(Double(report.ringPeak) > 0.7 * Double(queue.capacity))
    #expect(report.ringPeak <= queue.capacity)
    #expect(report.warnings.contains { $0.contains("held only the last") })
    #expect(report.ledger.isBalanced)
  }

  @Test func `Only the first trigger makes a clip unless repeats are on`()
    throws
  {
    var random = SeededGenerator(seed: 5)
    let camera = try ScriptedCamera(120)
    let scratch = try Scratch()
    let settings = TriggerSettings(
      preDuration: MediaTime(microseconds: 50_000), postDuration: MediaTime(microseconds: 50_000))
    let frames = try frames(600, camera, &random)
    let triggers = [1_000_000, 2_000_000].map {
      CaptureTrigger(source: .call, microseconds: camera.base + $0)
    }
    let take = try take(camera, settings, in: scratch)
    let queue = try FrameQueue(capacity: 8 << 20, largestFrame: take.input.maximumByteCount)
    let ring = ScriptedRing(queue, frames, of: try camera.images([7]), triggers: triggers)
    var events: [String] = []
    let report = try run(take, ring) { event in
      switch event {
      case .triggered(_, let clip): events.append("trigger \(clip)")
      case .finished(let clip): events.append("file \(clip.ledger.stored)")
      default: break
      }
    }
    #expect(report.clips.map(\.path) == [scratch.file("clip.mov")])
    #expect(events.first == "trigger 1")
    #expect(events.count == 2)
    #expect(take.control.requestedStop == .duration)
  }

  /// Captures five seconds at 120 fps, with triggers at the given microseconds of the capture.
  private func capture(
    _ triggers: [Int64], in scratch: Scratch, configure: (inout TriggerSettings) -> Void
  ) throws -> (report: TriggeredReport, stop: StopReason?) {
    let camera = try ScriptedCamera(120)
    var settings = TriggerSettings(
      preDuration: MediaTime(microseconds: 500_000), postDuration: MediaTime(microseconds: 500_000))
    settings.repeats = true
    settings.clipPath = { scratch.file("clip\($0).mov") }
    configure(&settings)
    let frames = try (0..<600).map { number in
      var frame = try camera.observation(Int64(number))
      frame.arrival += 500
      return frame
    }
    let take = try take(camera, settings, in: scratch)
    let queue = try FrameQueue(capacity: 16 << 20, largestFrame: take.input.maximumByteCount)
    let ring = ScriptedRing(
      queue, frames, of: try camera.images([7]),
      triggers: triggers.map {
        CaptureTrigger(source: .call, microseconds: camera.base + $0)
      })
    return (try run(take, ring), take.control.requestedStop)
  }

  @Test func `A capture is armed once the ring holds the pre-roll`() throws {
    var random = SeededGenerator(seed: 3)
    let camera = try ScriptedCamera(120)
    let scratch = try Scratch()
    var settings = TriggerSettings(
      preDuration: MediaTime(microseconds: 500_000), postDuration: MediaTime(microseconds: 50_000))
    (settings.repeats, settings.armsWhenFull) = (true, true)
    let take = try take(camera, settings, in: scratch) {
      $0.limit = CaptureLimit(duration: MediaTime(seconds: 1))
    }
    let queue = try take.makeRing()
    let ring = ScriptedRing(
      queue, try frames(400, camera, &random), of: try camera.images([7]), triggers: [])
    var armed: [Range<Int64>] = []
    var history: [(time: MediaTime, isFull: Bool)] = []
    let pusher = try BlockingThread { ring.push() }
    defer { pusher.join() }
    _ = take.write(
      from: ring.queue, end: { CaptureEnd(stopReason: .duration) }, arm: { armed.append($0) },
      takeTriggers: { (ring.takeTriggers(), nil) },
      notify: { event in
        if case .preRoll(let time, let isFull) = event { history.append((time, isFull)) }
      })
    let range = try #require(armed.first)
    #expect(armed.count == 1 && range.lowerBound >= camera.base + 500_000)
    // A second of the duration limit.
    #expect(range.count == 1_000_000)
    #expect(history.last?.time == MediaTime(microseconds: 500_000))
    #expect(history.map(\.isFull).filter { $0 } == [true] && history.last?.isFull == true)
    #expect(
      history.count <= 51 && zip(history, history.dropFirst()).allSatisfy { $0.time < $1.time })
    // The duration limit counts from the arming.
    #expect(take.control.requestedStop == .duration)
  }

  @Test func `Refuses and counts triggers beyond 16 concurrent clips`() throws {
    let scratch = try Scratch()
    let (report, _) = try capture((0..<40).map { 1_000_000 + $0 }, in: scratch) { _ in }
    #expect(report.clips.count == TriggerQueue.capacity && report.triggerCount == 16)
    #expect(report.refusedTriggerCount == 24)
    #expect(report.clips.allSatisfy { $0.ledger.stored == 120 && $0.isPlayable })
    #expect(try scratch.names().count == 16)
  }

  @Test func `A triggered capture ends at the maximum number of clips`() throws {
    let scratch = try Scratch()
    let times: [Int64] = [500_000, 1_700_000, 2_900_000, 4_000_000]
    let (report, stop) = try capture(times, in: scratch) { $0.maximumClipCount = 2 }
    #expect(report.clips.count == 2 && stop == .maxClips)
    #expect(report.ignoredTriggerCount == 2)
    #expect(try scratch.names() == ["clip1.mov", "clip2.mov"])
  }

  @Test func `A clip report warns of a trigger soon after camera start`() throws {
    let scratch = try Scratch()
    let (report, _) = try capture([200_000, 2_000_000], in: scratch) { _ in }
    let warnings = report.clips.map(\.warnings)
    #expect(warnings.count == 2 && warnings.last == [])
    #expect(
      warnings.first == [
        "\(scratch.file("clip1.mov")) holds 200 ms from before its trigger instead of 500 ms: the "
          + "camera had not run for longer"
      ])
  }

  @Test func `A trigger after the last frame stores no clip and fails`() throws {
    let scratch = try Scratch()
    // The trigger is after the last frame.
    let (report, _) = try capture([9_000_000], in: scratch) { _ in }
    #expect(report.clips.isEmpty && report.triggerCount == 1)
    #expect(report.problem?.code == .nothingStored)
  }

  @Test func `A clip file that cannot be created ends a triggered capture`() throws {
    var random = SeededGenerator(seed: 6)
    let camera = try ScriptedCamera(120)
    let scratch = try Scratch()
    var settings = TriggerSettings(
      preDuration: .zero, postDuration: MediaTime(microseconds: 50_000))
    settings.clipPath = { _ in scratch.file("missing/clip.mov") }
    let frames = try frames(300, camera, &random)
    let take = try take(camera, settings, in: scratch)
    let queue = try FrameQueue(capacity: 8 << 20, largestFrame: take.input.maximumByteCount)
    let ring = ScriptedRing(
      queue, frames, of: try camera.images([7]),
      triggers: [CaptureTrigger(source: .call, microseconds: camera.base + 500_000)])
    let report = try run(take, ring)
    #expect(report.clips.isEmpty)
    #expect(report.problem?.code == .cannotCreate)
    #expect(take.control.requestedStop == .error)
  }

  @Test(arguments: [VideoOutputSettings.passthrough, .ffv1, .h264])
  func `A clip from an H.264 camera can begin between key frames`(
    codec: VideoOutputSettings
  ) throws {
    let camera = try ScriptedCamera(240)
    let scratch = try Scratch()
    let images = try camera.streamFrames(600, in: scratch)
    #expect(images.count == 600)
    var settings = TriggerSettings(
      preDuration: MediaTime(microseconds: 180_000), postDuration: MediaTime(microseconds: 90_000))
    settings.repeats = true
    settings.clipPath = { scratch.file("clip\($0).mov") }
    let device = try CaptureDevice.named("synthetic:128x96@240")
    let input = DeviceInput(
      device: device, format: try device.format(matching: ModeRequest(parsing: "/mjpg")),
      driver: ScriptedDriver([]),
      delivery: try FrameDelivery(layout: .compressed(.h264), width: 128, height: 96),
      negotiatedFrameRate: camera.rate, maximumByteCount: 128 * 96 * 3)
    var recording = RecordingSettings(path: scratch.file("clip.mov"))
    recording.video = codec
    let control = CaptureControl()
    control.switchedOn.store(camera.base - 1_000, ordering: .relaxed)
    let take = TriggeredTake(
      TakeConfiguration(
        input: input, settings: recording,
        plan: try VideoPipelinePlan(codec, for: input.delivery), control: control, audio: nil,
        beginsWithStream: true), settings)
    let frames = try (0..<600).map { number in
      var frame = try camera.observation(Int64(number))
      frame.arrival += 500
      return frame
    }
    // Triggers before the second key frame, just after a key frame, and at other positions in a
    // GOP.
    let triggers = [100_000, 700_000, 1_000_001, 1_333_333, 2_000_000].map {
      CaptureTrigger(source: .call, microseconds: camera.base + $0)
    }
    let queue = try take.makeRing()
    let report = try run(take, ScriptedRing(queue, frames, of: images, triggers: triggers))
    #expect(report.clips.count == triggers.count)
    var hiddenCount = 0
    for (clip, trigger) in zip(report.clips, triggers) {
      let expected = frames.filter {
        $0.microseconds >= trigger.microseconds - 180_000
          && $0.microseconds < trigger.microseconds + 90_000
      }
      #expect(clip.isPlayable)
      #expect(clip.ledger.stored == Int64(expected.count))
      let asset = try Asset(path: clip.path)
      #expect(try paintedNumbers(asset) == expected.map { Int($0.sequence) })
      let first = try #require(expected.first).microseconds
      let times: [Int64] = expected.map { ($0.microseconds - first) * 1_000 }
      #expect(asset.frameTimingRows().map(\.time.wholeNanoseconds) == times)
      // Players do not show the packets that are marked as discarded.
      var demuxer = try Demuxer(opening: clip.path)
      while let packet = try demuxer.nextPacket() { if packet.isDiscarded { hiddenCount += 1 } }
    }
    #expect(codec == .ffv1 ? hiddenCount == 0 : hiddenCount > 0)
  }
}
