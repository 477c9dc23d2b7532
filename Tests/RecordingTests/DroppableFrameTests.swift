// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankMovieFormat
@testable import OvercrankRecording

/// H.264 takes in which only every nth frame is a reference frame.
struct DroppableFrameTests {
  /// Whether a packet of length-prefixed NAL units contains a reference frame.
  private static func isReferenced(_ packet: [UInt8]) -> Bool {
    packet.withUnsafeBytes { bytes in
      var units = NALUnitReader(bytes, lengthSize: 4)
      while let unit = units.next() {
        let header = bytes[unit.lowerBound]
        if (1...5).contains(header & 0x1F) { return header & 0x60 != 0 }
      }
      return true
    }
  }

  /// The contents of a nested box, found by the box types from the outermost.
  private static func contents(
    of types: [UInt32], in bytes: ArraySlice<UInt8>
  ) -> [ArraySlice<UInt8>] {
    guard let type = types.first else { return [bytes] }
    return Box.list(in: Array(bytes), from: 0, to: bytes.count).filter { $0.type == type }.flatMap {
      contents(of: Array(types.dropFirst()), in: Array(bytes)[Int($0.start + 8)..<Int($0.end)])
    }
  }

  private static func recorded(
    _ path: String, interval: Int, frames: Int = 130, audio: Bool = false
  ) throws -> RecordingReport {
    var camera = try ScriptedCamera(240)
    camera.hasAudio = audio
    var steps = try camera.frames(0..<frames)
    // Frames are missing before the second key frame, so that GOPs have irregular lengths.
    steps.removeSubrange(41..<44)
    return try camera.take(steps, codec: .h264, to: path) {
      $0.referenceFrameInterval = interval
    }.report
  }

  @Test(arguments: [2, 4, 8, 16])
  func `Stores each frame at its time and marks non-reference frames`(
    interval: Int
  ) async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let report = try Self.recorded(path, interval: interval, audio: true)
    #expect(report.isPlayable && report.ledger.stored == 127 && report.ledger.isBalanced)
    let asset = try Asset(path: path)
    let numbers = Array(0..<41) + Array(44..<130)
    #expect(try paintedNumbers(asset) == numbers.map { $0 })
    let camera = try ScriptedCamera(240)
    let times = try numbers.map { try camera.observation(Int64($0)).microseconds - camera.base }
    #expect(asset.frameTimingRows().map(\.time.wholeMicroseconds) == times)
    #expect(asset.duration == MediaTime(microseconds: times[126] + 4_167))
    #expect(report.duration.wholeMicroseconds == times[126] + 4_167)
    // The `sdtp` box marks exactly the samples whose NAL units are not references.
    let isReferenced = try frameBytes(path).map(Self.isReferenced)
    let tables = Self.contents(
      of: [
        BoxType.movie, BoxType.track, BoxType.trackMedia, BoxType.mediaInformation,
        BoxType.sampleTable, 0x7364_7470,
      ], in: try bytes(of: path)[...])
    #expect(tables.count == 1)
    #expect(tables.first.map { $0.dropFirst(4).map { $0 >> 2 & 3 != 2 } } == isReferenced)
    // The reference frames are every nth frame of a GOP and its last frame.
    let groups = 4
    let maximum = (127 + interval - 1) / interval + 2 * groups
    let count = isReferenced.count { $0 }
    #expect(count <= maximum && count >= 127 / interval)
    // A decoder that skips non-reference frames decodes the remaining frames without an error.
    let shown = try await FFmpeg.converted(
      path, ["-map", "0:v", "-fps_mode", "passthrough", "-f", "framecrc"],
      decoding: ["-skip_frame", "noref"])
    let lines = String(decoding: shown, as: UTF8.self).split(separator: "\n")
    #expect(lines.count { !$0.hasPrefix("#") } == count)
    // The stream also decodes without an error after its non-reference frames were removed.
    let stream = try await FFmpeg.converted(
      path, ["-map", "0:v", "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264"])
    let kept = stream.withUnsafeBytes { bytes -> [UInt8] in
      AnnexB.units(of: bytes).filter { bytes[$0.lowerBound] & 0x7F != 1 }
        .flatMap { [0, 0, 0, 1] + [UInt8](bytes[$0]) }
    }
    let cut = try scratch.write(kept, as: "cut.h264")
    let decoded = try await FFmpeg.converted(
      cut, ["-fps_mode", "passthrough", "-f", "framecrc"],
      decoding: ["-xerror", "-err_detect", "explode"])
    #expect(
      String(decoding: decoded, as: UTF8.self).split(separator: "\n")
        .count { !$0.hasPrefix("#") } == count)
  }

  @Test(arguments: [1, 2, 5]) func `A short take with non-reference frames stores every frame`(
    frames: Int
  ) throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let camera = try ScriptedCamera(240)
    let report = try camera.take(try camera.frames(0..<frames), codec: .h264, to: path) {
      $0.referenceFrameInterval = 8
    }.report
    #expect(report.isPlayable && report.ledger.stored == frames)
    #expect(try paintedNumbers(try Asset(path: path)) == (0..<frames).map { $0 })
  }

  /// Writes a take without finishing it.
  private static func writeUnfinished(_ path: String, camera: ScriptedCamera, frames: Int) throws {
    let configuration = try camera.configuration(.h264, to: path) { $0.referenceFrameInterval = 4 }
    var writer = TakeFileWriter(configuration, into: try configuration.settings.makeFile())
    for (number, image) in try camera.images(0..<frames).enumerated() {
      try image.withUnsafeBytes { bytes in
        _ = writer.store(
          QueuedFrame(observation: try camera.observation(Int64(number)), bytes: bytes))
      }
    }
    let isOver = writer.isOver
    #expect(!isOver)
  }

  @Test func `Fragments of a growing file mark the non-reference frames`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    try Self.writeUnfinished(path, camera: try ScriptedCamera(240), frames: 130)
    let marks = Self.contents(
      of: [BoxType.fragment, BoxType.trackFragment, BoxType.trackRun],
      in: try bytes(of: path)[...]
    ).flatMap { run -> [Bool] in
      let run = Array(run)
      #expect(Array(run[0..<4]) == [0, 0, 0xF, 1])
      // After the count and the offset come 16 bytes for each sample. The third word has the sample
      // flags.
      return stride(from: 12, to: run.count, by: 16).map { run[$0 + 9] >> 6 & 3 != 2 }
    }
    let packets = try frameBytes(path)
    #expect(packets.count > 60)
    #expect(marks == packets.prefix(marks.count).map(Self.isReferenced))
    #expect(marks.contains(false))
  }

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `Recovers a killed H.264 take and reports its missing frames`(
    seed: UInt64
  ) throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let camera = try ScriptedCamera(240)
    var random = SeededGenerator(seed: seed)
    let frames = Int.random(in: 6...100, using: &random)
    try Self.writeUnfinished(path, camera: camera, frames: frames)
    let report = try MovieRecovery.recover(path)
    let ledger = try #require(report.ledger)
    // Up to five frames may be missing: a group of four, and one frame in the encoder.
    #expect(report.isPlayable && report.frameCount >= frames - 5)
    #expect(ledger.isBalanced && ledger.stored == report.frameCount)
    #expect(ledger.stored + ledger.lostWriter == frames)
    let asset = try Asset(path: path)
    let numbers = try paintedNumbers(asset).compactMap { $0 }
    #expect(numbers.count == Int(report.frameCount) && numbers == numbers.sorted())
    let times = try numbers.map { try camera.observation(Int64($0)).microseconds - camera.base }
    #expect(asset.frameTimingRows().map(\.time.wholeMicroseconds) == times)
    // The reported gaps must be the missing frames.
    var expected: [Int] = []
    for gap in report.gaps where gap.cause == .lostWriter {
      let before = gap.afterIndex >= 0 ? numbers[Int(gap.afterIndex)] : -1
      expected += (1...Int(gap.count)).map { before + $0 }
    }
    #expect(expected == (0..<frames).filter { !numbers.contains($0) })
  }

  @Test func `Refuses non-reference frames for codecs other than H.264`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let cases: [(VideoOutputSettings, Int)] = [
      (.automatic, 4), (.mjpeg, 4), (.ffv1, 4), (.h264, 1), (.h264, 0), (.h264, 17), (.h264, -3),
    ]
    for (codec, interval) in cases {
      let error = #expect(throws: MediaError.self) {
        try camera.take(try camera.frames(0..<4), codec: codec, to: scratch.file("a.mov")) {
          $0.referenceFrameInterval = interval
        }
      }
      #expect(error?.code == .codecRefused)
    }
    #expect(try scratch.names() == [])
  }
}
