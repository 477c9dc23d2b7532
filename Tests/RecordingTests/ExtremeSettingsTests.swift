// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRecording

/// Extreme times in the settings of a recording.
///
/// Each gives a result or a typed error.
struct ExtremeSettingsTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let refusals: Set<MediaError.Code> = [
    .nothingStored, .badConfiguration, .invalidData, .wrongState,
  ]

  private func session() throws(MediaError) -> CaptureSession {
    try CaptureSession(CaptureDevice.named("synthetic:128x96@240?pace=max"))
  }

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `A take with any duration limit stops at its frame limit`(
    seed: UInt64
  ) throws {
    var random = SeededGenerator(seed: seed)
    var settings = RecordingSettings(path: scratch.file("a.mov"))
    settings.limit = CaptureLimit(duration: random.extremeTime(), frameCount: 5)
    do throws(MediaError) {
      let report = try MovieFileOutput(session: session(), settings: settings).record()
      #expect(report.ledger.stored <= 5)
    } catch { #expect(Self.refusals.contains(error.code), "\(error)") }
  }

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `A clip of extreme duration ends when the capture ends`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var settings = RecordingSettings(path: scratch.file("a.mov"))
    settings.limit = CaptureLimit(frameCount: 24)
    var triggers = TriggerSettings(
      preDuration: random.extremeTime(), postDuration: random.extremeTime())
    triggers.quietPeriod = random.extremeTime()
    triggers.memoryLimit = 1 << 20
    do throws(MediaError) {
      let output = try MovieFileOutput(session: session(), settings: settings)
      let trigger = CaptureTrigger(source: .call, time: random.extremeTime())
      let report = try output.record(on: triggers) { event in
        if case .waiting = event { output.trigger(trigger) }
      }
      #expect(report.clips.count <= 1)
    } catch {
      #expect(Self.refusals.contains(error.code), "\(error)")
    }
  }

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `A huge minimum frame duration still delivers the first frame`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let (session, output) = (try session(), VideoDataOutput())
    output.minFrameDuration = random.extremeTime()
    try await session.addOutput(output)
    try await session.startRunning()
    var count = 0
    for await _ in output.frames {
      count += 1
      break
    }
    #expect(count == 1)
    await session.stopRunning()
  }

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `A frame with an extreme timestamp never traps the writer`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let writer = AssetWriter(path: scratch.file("a.mov"))
    let input = try AssetWriterInput(
      formatDescription: FormatDescription(mediaSubType: .codec(.mjpeg), width: 128, height: 96),
      frameRate: FrameRate(100), video: .automatic, expectsMediaDataInRealTime: false)
    try writer.add(input)
    try writer.startWriting()
    let images = try ScriptedCamera(100).images(0..<4)
    do throws(MediaError) {
      try writer.startSession(atSourceTime: random.extremeTime())
      for image in images {
        let time = random.extremeTime()
        let result = image.withUnsafeBytes { bytes in
          Result { () throws(MediaError) in try input.append(bytes: bytes, at: time) }
        }
        try result.get()
      }
      try writer.finishWriting()
    } catch {
      #expect(Self.refusals.contains(error.code), "\(error)")
      writer.cancelWriting()
    }
  }
}
