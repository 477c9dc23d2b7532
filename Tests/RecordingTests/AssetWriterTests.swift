// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRecording

/// Movies of frames that a program appends.
struct AssetWriterTests {
  private static let format = FormatDescription(
    mediaSubType: .codec(.mjpeg), width: 128, height: 96)

  private static func time(_ number: Int, from start: Int64 = 7_000_000) -> MediaTime {
    MediaTime(microseconds: start + Int64(number) * 10_000)
  }

  /// Appends an image, and returns the error code if it was refused.
  private static func append(
    _ image: [UInt8], _ time: MediaTime, to input: AssetWriterInput
  ) -> MediaError.Code? {
    image.withUnsafeBytes { bytes in
      do throws(MediaError) {
        try input.append(bytes: bytes, at: time)
        return nil
      } catch { return error.code }
    }
  }

  @Test(arguments: [VideoOutputSettings.automatic, .h264, .ffv1], [false, true])
  func `An asset writer stores appended frames at their times`(
    codec: VideoOutputSettings, inRealTime: Bool
  ) throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let images = try ScriptedCamera(100).images(0..<40)
    let writer = AssetWriter(path: path, metadata: ["title": "Mine"])
    let input = try AssetWriterInput(
      formatDescription: Self.format, frameRate: FrameRate(100), video: codec,
      expectsMediaDataInRealTime: inRealTime)
    #expect(!input.isReadyForMoreMediaData && writer.status == .unknown)
    try writer.add(input)
    try writer.startWriting()
    // The session begins with frame 5; frame 20 is left out.
    try writer.startSession(atSourceTime: Self.time(5))
    #expect(input.isReadyForMoreMediaData)
    for (number, image) in images.enumerated() where number != 20 {
      #expect(Self.append(image, Self.time(number), to: input) == nil)
    }
    try writer.finishWriting()
    #expect(writer.status == .completed && writer.error == nil)
    #expect(writer.storedFrameCount == 34)
    #expect(!input.isReadyForMoreMediaData)
    let asset = try Asset(path: path)
    let numbers = (5..<40).filter { $0 != 20 }
    #expect(try paintedNumbers(asset) == numbers.map { $0 })
    let times = asset.frameTimingRows().map(\.time.wholeNanoseconds)
    #expect(times == numbers.map { Int64($0 - 5) * 10_000_000 })
    #expect(asset.duration == (MediaTime(35, over: 100)))
    #expect(asset.metadata["title"] == "Mine")
    #expect(asset.captureFrameRate?.rate == FrameRate(100))
    #expect(try !holdsBox("moof", path))
  }

  @Test func `An asset writer refuses damaged frames and equal timestamps`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let images = try ScriptedCamera(100).images(0..<6)
    let writer = AssetWriter(path: path)
    let input = try AssetWriterInput(
      formatDescription: Self.format, frameRate: FrameRate(100), video: .h264)
    try writer.add(input)
    #expect(Self.append(images[0], Self.time(0), to: input) == .wrongState)
    try writer.startWriting()
    #expect(Self.append(images[0], Self.time(0), to: input) == .wrongState)
    try writer.startSession(atSourceTime: Self.time(0))
    for number in 0..<3 {
      #expect(Self.append(images[number], Self.time(number), to: input) == nil)
    }
    #expect(Self.append(images[3], Self.time(2), to: input) == .invalidData)
    #expect(Self.append(images[3], Self.time(1), to: input) == .invalidData)
    #expect(Self.append([1, 2, 3], Self.time(3), to: input) == .invalidData)
    #expect(Self.append(images[4], Self.time(4), to: input) == nil)
    try writer.finishWriting()
    #expect(try paintedNumbers(Asset(path: path)) == [0, 1, 2, 4])
    #expect(Self.append(images[5], Self.time(5), to: input) == .wrongState)
    #expect(throws: MediaError.self) { try writer.finishWriting() }
  }

  @Test func `A cancelled or empty asset writer leaves no file`() throws {
    let scratch = try Scratch()
    let image = try ScriptedCamera(100).images(0..<1)[0]
    for isDropped in [false, true] {
      var writer: AssetWriter? = AssetWriter(path: scratch.file("a.mov"))
      let input = try AssetWriterInput(
        formatDescription: Self.format, frameRate: FrameRate(100))
      try writer?.add(input)
      try writer?.startWriting()
      try writer?.startSession(atSourceTime: .zero)
      #expect(Self.append(image, .zero, to: input) == nil)
      #expect(try scratch.names() == ["a.mov"])
      if isDropped { writer = nil } else { writer?.cancelWriting() }
      #expect(try scratch.names() == [])
      #expect(writer.map { $0.status == .cancelled } ?? true)
    }
    let empty = AssetWriter(path: scratch.file("b.mov"))
    try empty.add(
      AssetWriterInput(formatDescription: Self.format, frameRate: FrameRate(100)))
    try empty.startWriting()
    let error = #expect(throws: MediaError.self) { try empty.finishWriting() }
    #expect(error?.code == .nothingStored && empty.status == .failed)
    #expect(try scratch.names() == [])
  }

  @Test func `An asset writer refuses invalid inputs and existing outputs`() throws {
    let scratch = try Scratch()
    let path = try scratch.write([1, 2, 3], as: "a.mov")
    let input = try AssetWriterInput(
      formatDescription: Self.format, frameRate: FrameRate(100))
    let writer = AssetWriter(path: path)
    #expect(throws: MediaError.self) { try writer.startWriting() }
    try writer.add(input)
    #expect(throws: MediaError.self) { try AssetWriter(path: path).add(input) }
    let error = #expect(throws: MediaError.self) { try writer.startWriting() }
    #expect(error?.code == .outputExists)
    #expect(try bytes(of: path) == [1, 2, 3])
    for format in [PixelFormat(rawValue: "no_such"), .nv12] {
      let refusal = #expect(throws: MediaError.self) {
        try AssetWriterInput(
          formatDescription: FormatDescription(
            mediaSubType: .pixels(format), width: 64, height: 64),
          frameRate: FrameRate(100), video: .raw)
      }
      #expect(refusal?.code == .codecRefused)
    }
  }
}
