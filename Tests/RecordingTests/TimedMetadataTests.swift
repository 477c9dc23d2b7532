// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankMovieFormat
@testable import OvercrankRecording

/// Timed metadata values, and metadata tags of files.
struct TimedMetadataTests {
  private struct ExpectedValue: Equatable {
    var frame: Int64
    var key: String
    var value: MetadataValue
  }

  /// Random metadata values at random frames.
  ///
  /// Some frames have several values, and most have none.
  private static func values(_ count: Int, frames: Int64, seed: UInt64) -> [ExpectedValue] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map { number in
      let value: MetadataValue =
        switch number % 4 {
        case 0: .number(Double.random(in: -1e6...1e6, using: &random))
        case 1: .integer(Int64.random(in: .min ... .max, using: &random))
        case 2: .text("Läufer \(number) \u{1F3C3}")
        default: .text("")
        }
      return ExpectedValue(
        frame: Int64.random(in: 0..<frames, using: &random), key: "com.example.key\(number % 5)",
        value: value)
    }
  }

  private static func found(_ path: String) throws -> [ExpectedValue] {
    try Asset(path: path).timedMetadata().map {
      ExpectedValue(frame: $0.frameIndex, key: $0.key, value: $0.value)
    }
  }

  /// Sorts by frame, and values of the same frame by arrival.
  private static func sorted(_ values: [ExpectedValue]) -> [ExpectedValue] {
    values.enumerated().sorted { ($0.element.frame, $0.offset) < ($1.element.frame, $1.offset) }
      .map(\.element)
  }

  private func session(_ rate: Int = 240) throws -> CaptureSession {
    let camera = try CaptureDevice.named("synthetic:160x120@\(rate)?pace=max")
    return try CaptureSession(
      device: camera, format: camera.format(matching: ModeRequest(parsing: "/mjpg")))
  }

  @Test(arguments: ["a.mov", "a.mp4"], [false, true])
  func `Each timed metadata value is read back at its frame`(
    name: String, isFastStart: Bool
  ) async throws {
    let scratch = try Scratch()
    let path = scratch.file(name)
    var settings = RecordingSettings(path: path)
    settings.limit = CaptureLimit(frameCount: 600)
    settings.isOptimizedForNetworkUse = isFastStart
    let session = try session()
    let output = try MovieFileOutput(session: session, settings: settings)
    let values = Self.values(1_000, frames: 600, seed: 5)
    // Half of the values are added before the take. The others are added while it runs, for stored
    // and for future frames.
    for value in values.prefix(500) {
      try output.append(value.value, forKey: value.key, atFrame: value.frame)
    }
    var rest = values.dropFirst(500)
    let report = try output.record { progress in
      for _ in 0..<20 {
        guard progress.stored < 580, let value = rest.popFirst() else { return }
        _ = try? output.append(value.value, forKey: value.key, atFrame: value.frame)
      }
    }
    #expect(rest.isEmpty && report.isPlayable && report.warnings.isEmpty)
    #expect(try Self.found(path) == Self.sorted(values))
    let times = try Asset(path: path).frameTimingRows().map(\.time)
    #expect(
      try Asset(path: path).timedMetadata().allSatisfy { $0.time == times[Int($0.frameIndex)] })

    // ffprobe finds metadata packets at the times of the frames that have values.
    let frames = Set(values.map(\.frame)).sorted()
    let packets = try await FFmpeg.probe(path, "packet=pts", stream: "d:0")
    // An empty packet lasts from the start to the first value.
    let found = packets.compactMap { Int64($0.filter(\.isNumber)) }
    let due = frames.map { times[Int($0)].wholeMicroseconds }
    #expect(found == (due.first == 0 ? due : [0] + due))
    // The metadata packets contain the values in the order of their frames.
    let data = try await FFmpeg.converted(path, ["-map", "0:d:0", "-c", "copy", "-f", "data"])
    let items = Box.list(in: data, from: 0, to: data.count).filter { $0.type != 0 }
    #expect(
      items.map { Array(data[Int($0.start + 8)..<Int($0.end)]) }
        == Self.sorted(values).map(\.value.bytes))
    let tags = try await FFmpeg.probe(path, "stream=codec_tag_string,codec_type", stream: "d:0")
    #expect(tags == ["data,mebx"])
    #expect(try await FFmpeg.probe(path, "stream=nb_frames", stream: "v:0") == ["600"])
  }

  @Test func `Metadata without a frame number belongs to the latest frame`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let camera = try ScriptedCamera(100)
    let box = Mutex<MovieFileOutput?>(nil)
    var steps = try camera.frames(0..<50)
    // When the closure runs, the capture clock still has the time of the previous frame.
    for number in [40, 20, 1] {
      steps.insert(
        .action {
          _ = try? box.withLock { $0 }?.append(.integer(Int64(number)), forKey: "number")
        }, at: number)
    }
    let session = try camera.session(ScriptedDriver(steps))
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: path))
    box.withLock { $0 = output }
    _ = try output.record()
    #expect(
      try Self.found(path)
        == [1, 20, 40].map { ExpectedValue(frame: $0 - 1, key: "number", value: .integer($0)) })
  }

  @Test func `A metadata value is stored in the file that has its frame`() throws {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: "")
    settings.limit = CaptureLimit(frameCount: 480)
    let session = try session()
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    let values = Self.values(300, frames: 480, seed: 8)
    for value in values { try output.append(value.value, forKey: value.key, atFrame: value.frame) }
    // No frame has this number.
    try output.append(1, forKey: "late", atFrame: 480)
    let report = try output.record(
      in: SegmentSettings(duration: MediaTime(1, over: 2)) { scratch.file("\($0).mov") })
    #expect(report.files.count == 4)
    let found = try report.files.enumerated().flatMap { index, file in
      try Self.found(file.path).map { value in
        var value = value
        value.frame += Int64(index) * 120
        return value
      }
    }
    #expect(found == Self.sorted(values))
    #expect(report.take.warnings.count { $0.contains("1 metadata value") } == 1)
  }

  @Test func `A metadata value for a frame in a finished file is dropped`() {
    var clock = PausableClock()
    clock.begin(atMicroseconds: 1_000)
    func value(_ position: PendingValue.Position) -> PendingValue {
      PendingValue(position: position, key: "code", value: 1)
    }
    var pending = PendingValues()
    // The file begins 100 µs after the take. The last frame of the file may still be reordered.
    let times: [Int64] = [100, 200, 300, 400]
    pending.add([value(.frameTime(1_050)), value(.frameTime(1_200)), value(.frameTime(1_350))])
    let taken = pending.take(times: times, margin: 1, clock: clock, end: .none)
    #expect(taken.map(\.ticks) == [200] && pending.lateCount == 1)
    #expect(pending.waiting.count == 1)
    #expect(pending.take(times: times, margin: 2, clock: clock, end: .take).map(\.ticks) == [300])
    // Before any frame is taken, no value is known to be late.
    pending.add([value(.frameTime(1_050))])
    #expect(pending.take(times: [100], margin: 2, clock: clock, end: .none).isEmpty)
    #expect(pending.lateCount == 1 && pending.waiting.count == 1)
    // A value without a frame at its time belongs to the first frame.
    pending.add([value(.captured(1_050))])
    #expect(pending.take(times: times, margin: 0, clock: clock, end: .take).map(\.ticks) == [100])
    #expect(pending.lateCount == 2)
  }

  @Test func `Timed metadata values are recovered from a killed take`() throws {
    let scratch = try Scratch()
    let path = scratch.file("left.mov")
    let camera = try ScriptedCamera(240)
    let values = Self.values(400, frames: 120, seed: 3)
    let configuration = try camera.configuration(
      .passthrough, to: path, audio: try camera.audio(in: scratch)
    ) { $0.audioCodec = .pcm }
    do {
      var writer = TakeFileWriter(configuration, into: try configuration.settings.makeFile())
      writer.add(
        values.map { PendingValue(position: .frame($0.frame), key: $0.key, value: $0.value) })
      for case .frameWithBytes(let frame, let image) in try camera.frames(0..<100) {
        image.withUnsafeBytes { bytes in
          _ = writer.store(QueuedFrame(observation: frame, bytes: bytes))
        }
        if frame.sequence % 4 == 3 { writer.flush() }
      }
      let isOver = writer.isOver
      #expect(!isOver)
    }
    // The movie can be read while it is still being recorded.
    #expect(try Asset(path: path).videoTrack.map { $0.frameCount >= 72 } == true)
    let report = try MovieRecovery.recover(path)
    #expect(report.frameCount == 100 && report.isPlayable)
    #expect(try Self.found(path) == Self.sorted(values.filter { $0.frame < 100 }))
    #expect(try Asset(path: path).audioTrack != nil)
    #expect(try paintedNumbers(Asset(path: path)) == (0..<100).map { $0 })
  }

  @Test func `Metadata tags can be changed while a take is recorded`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var settings = RecordingSettings(path: path)
    settings.limit = CaptureLimit(frameCount: 60)
    settings.metadata = [
      try MetadataItem(.title, "Sprint"),
      try MetadataItem(.description, "zweiter Versuch – gültig"),
      try MetadataItem(.keywords, "sprint,100 m"), try MetadataItem(.make, "Acme"),
      try MetadataItem(.model, "before"), try MetadataItem(.location, "+46.9481+007.4474/"),
      try MetadataItem(.init(rawValue: "com.example.lane"), 4),
    ]
    let session = try session()
    let output = try MovieFileOutput(session: session, settings: settings)
    _ = try output.record { _ in
      var items = output.metadata.filter { $0.key != .model }
      if let item = try? MetadataItem(.model, "during") { items.append(item) }
      output.metadata = items
    }
    let names = [
      "title": "Sprint", "com.apple.quicktime.description": "zweiter Versuch – gültig",
      "com.apple.quicktime.keywords": "sprint,100 m", "com.apple.quicktime.make": "Acme",
      "com.apple.quicktime.model": "during",
      "com.apple.quicktime.location.ISO6709": "+46.9481+007.4474/", "com.example.lane": "4",
    ]
    let metadata = try Asset(path: path).metadata
    for (name, value) in names {
      #expect(metadata[name] == value, "\(name)")
      #expect(
        try await FFmpeg.probe(path, "format_tags=\(name)")
          == ["\"\(value)\"", value]
          .filter { $0.contains(",") == $0.hasPrefix("\"") })
    }
  }
}
