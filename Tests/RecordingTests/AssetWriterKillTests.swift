// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRecording

/// A program that writes a movie in real time and is killed.
struct AssetWriterKillTests {
  private static let variable = "OVERCRANK_KILLED_WRITER"
  private static let rate = 100
  private static let imageCount = 50

  private static func images() throws -> [[UInt8]] {
    try ScriptedCamera(Int64(rate)).images(0..<imageCount)
  }

  /// The program that is killed: it appends frames and audio forever, and prints how many frames
  /// are stored.
  @Test(.enabled(if: ProcessInfo.processInfo.environment[variable] != nil))
  func `The helper of the kill test writes frames until killed`() throws {
    let path = try #require(ProcessInfo.processInfo.environment[Self.variable])
    let images = try Self.images()
    let video = try AssetWriterInput(
      formatDescription: FormatDescription(
        mediaSubType: .codec(.mjpeg), width: 128, height: 96), frameRate: FrameRate(Self.rate),
      expectsMediaDataInRealTime: true)
    let audio = try AssetWriterInput(
      mediaType: .audio, outputSettings: nil,
      sourceFormatHint: .audio(AudioFormat(.s16, sampleRate: 48_000, channelCount: 2)),
      expectsMediaDataInRealTime: true)
    let writer = AssetWriter(path: path)
    try writer.add(video)
    try writer.add(audio)
    try writer.startWriting()
    try writer.startSession(atSourceTime: .zero)
    var number = 0
    while true {
      guard video.isReadyForMoreMediaData, audio.isReadyForMoreMediaData else {
        usleep(100)
        continue
      }
      let time = MediaTime(Int64(number), over: Int32(Self.rate))
      try images[number % Self.imageCount].withUnsafeBytes {
        try video.append(bytes: $0, at: time)
      }
      try AssetWriterTrackTests.tone(from: number * 480, count: 480).withUnsafeBytes {
        try audio.append(bytes: $0, at: time)
      }
      number += 1
      FileHandle.standardOutput.write(Data("stored \(writer.storedFrameCount)\n".utf8))
    }
  }

  /// Starts the program, kills it after it printed some lines, and returns the highest count of
  /// stored frames that it printed.
  private static func killedWriter(_ path: String, afterLines limit: Int) throws -> Int {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = [
      "--testing-library", "swift-testing", "--filter",
      "The helper of the kill test writes frames until killed",
    ]
    process.environment = ProcessInfo.processInfo.environment.merging([variable: path]) { $1 }
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    var (lines, stored, rest) = (0, 0, Data())
    while lines < limit {
      let data = pipe.fileHandleForReading.availableData
      guard !data.isEmpty else { break }
      rest += data
      while lines < limit, let end = rest.firstIndex(of: 10) {
        let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
        rest = rest[rest.index(after: end)...]
        guard line.hasPrefix("stored "), let count = Int(line.dropFirst(7)) else { continue }
        (lines, stored) = (lines + 1, count)
      }
    }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    return stored
  }

  @Test func `A killed asset writer loses none of its stored frames`() throws {
    let images = try Self.images()
    var random = SeededGenerator(seed: 23)
    let kills = ProcessInfo.processInfo.environment["OVERCRANK_KILLS"].flatMap(Int.init) ?? 12
    for _ in 0..<kills {
      let scratch = try Scratch()
      let path = scratch.file("a.mov")
      let limit = Int.random(in: 1...600, using: &random)
      let stored = try Self.killedWriter(path, afterLines: limit)
      guard stored > 0 else { continue }
      let report = try MovieRecovery.recover(path)
      #expect(report.isPlayable && report.frameCount >= stored)
      #expect(report.lostFrameCount <= 1)
      var demuxer = try Demuxer(opening: path)
      var (frames, pcm) = (0, [UInt8]())
      while let packet = try demuxer.nextPacket() {
        let bytes = packet.withBytes { [UInt8]($0) }
        if packet.trackIndex == 0 {
          #expect(bytes == images[frames % Self.imageCount])
          #expect(packet.pts == Int64(frames) * 10_000)
          frames += 1
        } else {
          pcm += bytes
        }
      }
      #expect(Int64(frames) == report.frameCount)
      // Only the last partial block of the audio before the last frame is missing.
      let samples = pcm.count / 4
      #expect(pcm == AssetWriterTrackTests.tone(from: 0, count: samples))
      #expect(samples > (frames - 1) * 480 - 1_024)
    }
  }
}
