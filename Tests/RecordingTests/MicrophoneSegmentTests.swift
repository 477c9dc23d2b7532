// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// Takes divided into several files.
///
/// Their microphone audio is one continuous sequence of samples.
struct MicrophoneSegmentTests {
  /// Records the ``MicrophoneScene`` into files of 200 ms.
  private func take(
    _ steps: [ScriptedMicrophone.Step], beginsAt offset: Int64, in scratch: Scratch,
    codec: AudioCodec = .pcm
  ) throws -> SegmentedReport {
    let session = try MicrophoneScene.session(steps, beginsAt: offset, channels: 1)
    var settings = RecordingSettings(path: "")
    settings.audioCodec = codec
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    let segments = SegmentSettings(duration: MediaTime(1, over: 5)) { scratch.file("\($0).mov") }
    return try AlignedMicrophone.$timeout.withValue(3_600) {
      try output.record(in: segments)
    }
  }

  /// The maximum deviation of the joined audio from the tone, in a range of samples.
  private func error(_ joins: FileJoins, _ range: Range<Int>) -> Double {
    range.reduce(0.0) { worst, sample in
      let expected = MicrophoneScene.tone(Double(sample) / 48_000, 0)
      return max(worst, abs(Double(joins.audio[sample]) - expected))
    }
  }

  private let counts = [9_600, 9_600, 9_600, 9_600, 9_600, 9_600, 9_600, 4_800] as [Int64]

  @Test(arguments: [AudioCodec.pcm, .aac])
  func `Microphone audio is continuous from one file to the next`(codec: AudioCodec) throws {
    let scratch = try Scratch()
    let report = try take(
      [.samples(200_000)], beginsAt: -777_777_777, in: scratch, codec: codec)
    #expect(report.take.problem == nil && report.files.count == 8)
    #expect(report.files.compactMap(\.audio?.sampleCount) == counts)
    #expect(report.files.allSatisfy { $0.audio?.gaps == [] && $0.audio?.startOffset == .zero })
    let joins = try FileJoins(report.files.map(\.path))
    #expect(joins.isWhole && joins.audio.count == 72_000)
    // AAC is inexact at the start of the take, but not at the start of each file.
    #expect(error(joins, 4_000..<70_000) < (codec == .pcm ? 0.014 : 0.1))
  }

  @Test func `Silence before late audio can span two files`()
    throws
  {
    let scratch = try Scratch()
    let report = try take([.samples(200_000)], beginsAt: 500_000_000, in: scratch)
    let audio = report.files.compactMap(\.audio)
    #expect(audio.map(\.sampleCount) == counts)
    let silence = RecordedAudioGap(time: .zero, sampleCount: 9_600, cause: .late)
    #expect(audio.prefix(2).allSatisfy { $0.startOffset == nil && $0.gaps == [silence] })
    #expect(audio[2].startOffset == .nanoseconds(100_000_000) && audio[2].gaps == [])
    #expect(audio.dropFirst(3).allSatisfy { $0.startOffset == .zero && $0.gaps == [] })
    let joins = try FileJoins(report.files.map(\.path))
    #expect(joins.audio.prefix(23_900).allSatisfy { abs($0) < 0.000_1 })
    #expect(error(joins, 24_100..<71_900) < 0.002)
  }

  @Test func `An audio gap across two files is reported in both files`() throws {
    let scratch = try Scratch()
    // Audio is lost from 350 ms to 550 ms, and after 1.3 s.
    let report = try take(
      [.samples(16_800), .lost(9_600, .overrun), .samples(36_000), .unplugged], beginsAt: 0,
      in: scratch)
    let gaps = report.files.compactMap(\.audio?.gaps)
    #expect(gaps.map(\.count) == [0, 1, 1, 0, 0, 0, 1, 1])
    let found = gaps.flatMap { $0 }
    #expect(found.map(\.cause) == [.overrun, .overrun, .ended, .ended])
    #expect(found.map(\.sampleCount) == [2_400, 7_200, 4_800, 4_800])
    #expect(found.map(\.time.wholeNanoseconds) == [150_000_000, 0, 100_000_000, 0])
    let joins = try FileJoins(report.files.map(\.path))
    #expect(joins.isWhole && joins.audio.count == 72_000)
    for (audible, silence) in [(200..<16_700, 16_900..<26_300), (26_500..<62_300, 62_500..<72_000)]
    {
      #expect(error(joins, audible) < 0.002)
      #expect(joins.audio[silence].allSatisfy { abs($0) < 0.000_1 })
    }
  }
}
