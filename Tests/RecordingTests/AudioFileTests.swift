// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankMovieFormat
@testable import OvercrankRecording

/// Files that an asset writer writes from audio alone.
struct AudioFileTests {
  /// A file to write, and the codec that stores its samples.
  struct Row: CustomTestStringConvertible {
    let name: String
    let codec: AudioCodec?
    var format = AudioFormat(.s16, sampleRate: 48_000, channelCount: 2)

    var isLossless: Bool { codec != .aac }
    var testDescription: String { "\(name) \(codec?.rawValue ?? "unchanged")" }
  }

  static let rows = [
    Row(name: "a.mov", codec: nil), Row(name: "a.mov", codec: .aac),
    Row(name: "a.mp4", codec: .aac),
    Row(name: "a.m4a", codec: .aac), Row(name: "a.wav", codec: nil),
    Row(
      name: "b.wav", codec: nil,
      format: AudioFormat(.s24Packed, sampleRate: 96_000, channelCount: 1)
    ),
    Row(
      name: "c.wav", codec: nil, format: AudioFormat(.float, sampleRate: 44_100, channelCount: 6)),
  ]

  private struct Written {
    let writer: AssetWriter
    let input: AssetWriterInput
    var bytes: [UInt8] = []
  }

  /// Appends blocks of 10 ms.
  ///
  /// Floating-point samples get bit patterns of numbers between 1 and 2.
  private static func write(_ row: Row, to path: String, blocks: Int) throws -> Written {
    let writer = AssetWriter(path: path, metadata: ["title": "Tone"])
    let input = try AssetWriterInput(
      mediaType: .audio, outputSettings: row.codec.map { .audio($0) },
      sourceFormatHint: .audio(row.format))
    try writer.add(input)
    try writer.startWriting()
    try writer.startSession(atSourceTime: MediaTime(seconds: 5))
    var written = Written(writer: writer, input: input)
    let length = row.format.sampleRate / 100
    for block in 0..<blocks {
      var bytes = AssetWriterTrackTests.tone(
        from: block * length, count: length * row.format.bytesPerSample / 2, channelCount: 1)
      if row.format.sampleFormat == .float {
        for index in stride(from: 0, to: bytes.count, by: 4) {
          (bytes[index + 2], bytes[index + 3]) = (bytes[index] & 0x7F | 0x80, 0x3F)
        }
      }
      let time = MediaTime(Int64(500 + block), over: 100)
      try bytes.withUnsafeBytes { try input.append(bytes: $0, at: time) }
      written.bytes += bytes
    }
    return written
  }

  /// The bytes of all packets, and the stated duration in microseconds.
  private static func read(_ path: String) throws -> (bytes: [UInt8], microseconds: Int64) {
    var demuxer = try Demuxer(opening: path)
    #expect(demuxer.tracks.map(\.kind) == [.audio])
    var bytes: [UInt8] = []
    while let packet = try demuxer.nextPacket() { bytes += packet.withBytes { [UInt8]($0) } }
    return (bytes, demuxer.statedMicroseconds ?? 0)
  }

  @Test(arguments: rows)
  func `Audio alone is written to a file of its own`(row: Row) throws {
    let scratch = try Scratch()
    let path = scratch.file(row.name)
    let written = try Self.write(row, to: path, blocks: 150)
    try written.writer.finishWriting()
    #expect(written.writer.status == .completed && written.writer.storedFrameCount == 0)
    let (bytes, microseconds) = try Self.read(path)
    #expect(microseconds == 1_500_000)
    if row.isLossless { #expect(bytes == written.bytes) } else { #expect(bytes.count > 10_000) }
    #expect(try Demuxer(opening: path).metadata["title"] == "Tone")
    let head = try FileHandle(forReadingFrom: URL(fileURLWithPath: path)).read(upToCount: 12)
    let brand = head.map { String(decoding: $0[8..<12], as: UTF8.self) }
    let brands = ["mov": "qt  ", "mp4": "iso5", "m4a": "M4A ", "wav": "WAVE"]
    #expect(brand == brands[String(row.name.suffix(3))])
    #expect(try scratch.names() == [row.name])
  }

  @Test(arguments: rows)
  func `Audio alone survives a kill`(row: Row) throws {
    let scratch = try Scratch()
    let written = try Self.write(row, to: scratch.file(row.name), blocks: 100)
    // The file as a kill would leave it.
    let killed = scratch.file("killed-\(row.name)")
    try FileManager.default.copyItem(atPath: scratch.file(row.name), toPath: killed)
    written.writer.cancelWriting()
    #expect(try scratch.names() == ["killed-\(row.name)"])
    if !row.name.hasSuffix("wav") {
      let report = try MovieRecovery.recover(killed)
      #expect(report.isPlayable && report.frameCount == 0 && report.lostFrameCount == 0)
      #expect(report.duration >= MediaTime(9, over: 10) && report.duration <= MediaTime(seconds: 1))
      let again = try MovieRecovery.recover(killed)
      #expect(again.wasIntact && again.duration == report.duration && again.isPlayable)
    }
    let (bytes, microseconds) = try Self.read(killed)
    #expect((900_000...1_000_000).contains(microseconds))
    if row.isLossless { #expect(written.bytes.starts(with: bytes)) }
  }

  /// One bit of the file is wrong, so its packet and all later ones are dropped.
  @Test func `Dropped packets of audio alone are counted`() throws {
    let scratch = try Scratch()
    let row = Self.rows[0]
    let written = try Self.write(row, to: scratch.file(row.name), blocks: 100)
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: scratch.file(row.name)))
    let live = try [UInt8](#require(try file.readToEnd()))
    written.writer.cancelWriting()
    var bytes = try RecoveryTests.unsynced(live, scratch)
    let boxes = try MovieBoxes(opening: try scratch.write(bytes, as: "live.mov"))
    let head = try #require(boxes.boxes().first { $0.type == BoxType.movie })
    let samples = RecordedFragments(in: boxes, from: head.end).fragments.flatMap(\.samples)
    let damaged = samples.count - 3
    bytes[Int(samples[damaged].position)] ^= 1
    let report = try MovieRecovery.recover(try scratch.write(bytes, as: "damaged.mov"))
    #expect(report.isPlayable && report.frameCount == 0 && report.lostFrameCount == 3)
    let ticks = samples[damaged...].reduce(0) { $0 + $1.duration }
    #expect(ticks > 0)
    #expect(report.lostDuration == MediaTime(ticks, over: Int32(row.format.sampleRate)))
  }

  @Test func `Audio files refuse what they cannot hold`() throws {
    let scratch = try Scratch()
    let format = AudioFormat(.s16, sampleRate: 48_000, channelCount: 1)
    func audio(_ codec: AudioCodec?) throws -> AssetWriterInput {
      try AssetWriterInput(
        mediaType: .audio, outputSettings: codec.map { .audio($0) },
        sourceFormatHint: .audio(format))
    }
    let video = try AssetWriterInput(
      formatDescription: FormatDescription(mediaSubType: .codec(.mjpeg), width: 64, height: 48),
      frameRate: FrameRate(120))
    let table: [(name: String, inputs: [AssetWriterInput])] = [
      ("a.m4a", [video]), ("b.m4a", [try audio(nil)]), ("a.wav", [try audio(.aac)]),
      ("b.wav", [try audio(nil), try audio(nil)]),
    ]
    for (name, inputs) in table {
      let writer = AssetWriter(path: scratch.file(name))
      for input in inputs { try writer.add(input) }
      let error = #expect(throws: MediaError.self) { try writer.startWriting() }
      #expect(error?.code == .codecRefused && error?.message.contains(name) == true)
    }
    let empty = AssetWriter(path: scratch.file("empty.wav"))
    try empty.add(try audio(nil))
    try empty.startWriting()
    try empty.startSession(atSourceTime: .zero)
    let error = #expect(throws: MediaError.self) { try empty.finishWriting() }
    #expect(error?.code == .nothingStored)
    #expect(try scratch.names() == [])
  }
}
