// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// The state of the output file after a take, and of an existing file with the same name.
struct FileFateTests {
  private let refusal = MediaError(.deviceBusy, "busy", recovery: "close the other program")

  /// Tries a scripted take that may replace an existing file.
  private func failedTake(
    _ steps: [ScriptedDriver.Step], startError: MediaError? = nil
  ) throws -> (error: (any Error)?, remaining: [UInt8], names: [String]) {
    let scratch = try Scratch()
    let path = try scratch.write([1, 2, 3], as: "take.mov")
    let camera = try ScriptedCamera(100)
    var settings = RecordingSettings(path: path)
    settings.overwrites = true
    let session = try camera.session(ScriptedDriver(steps, startError: startError))
    let output = try MovieFileOutput(session: session, settings: settings)
    var caught: (any Error)?
    do { _ = try output.record() } catch { caught = error }
    return (caught, try bytes(of: path), try scratch.names())
  }

  @Test func `A failed take keeps the existing file at its output path`() throws {
    let busy = try failedTake([], startError: refusal)
    #expect(busy.error as? MediaError == refusal)
    #expect(busy.remaining == [1, 2, 3] && busy.names == ["take.mov"])
    let nothing = try failedTake([.ended])
    #expect((nothing.error as? MediaError)?.code == .nothingStored)
    #expect(nothing.remaining == [1, 2, 3] && nothing.names == ["take.mov"])
  }

  @Test func `A take replaces an existing file if overwriting is allowed`() throws {
    let scratch = try Scratch()
    let path = try scratch.write([1, 2, 3], as: "take.mov")
    let camera = try ScriptedCamera(100)
    let (report, _) = try camera.take(camera.frames(0..<30), to: path) { $0.overwrites = true }
    #expect(report.isPlayable)
    #expect(try Asset(path: path).videoTrack?.frameCount == 30)
    #expect(try scratch.names() == ["take.mov"])
  }

  @Test func `A take of a device that fails to start leaves no file`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let session = try camera.session(ScriptedDriver([], startError: refusal))
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("take.mov")))
    #expect(throws: refusal) { try output.record() }
    #expect(try scratch.names() == [])
  }

  @Test func `Refuses to replace a file that is not a regular file`() throws {
    let scratch = try Scratch()
    let path = scratch.file("pipe.mov")
    #expect(mkfifo(path, 0o600) == 0)
    let camera = try ScriptedCamera(100)
    let error = #expect(throws: MediaError.self) {
      try camera.take(camera.frames(0..<5), to: path) { $0.overwrites = true }
    }
    #expect(error?.code == .cannotCreate)
    #expect(error?.message.contains("not a regular file") == true)
    var status = stat()
    #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test func `Refuses a missing output directory before capturing`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let driver = ScriptedDriver(try camera.frames(0..<5))
    let session = try camera.session(driver)
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("no/such/take.mov")))
    let error = #expect(throws: MediaError.self) { try output.record() }
    #expect(error?.code == .cannotCreate)
    #expect(error?.message.contains("no/such/take.mov") == true)
    #expect(error?.recoverySuggestion.contains("directory") == true)
    #expect(driver.stopCount == 0)
  }

  @Test func `A finished movie output keeps its file and refuses new takes`() throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let camera = try ScriptedCamera(100)
    var settings = RecordingSettings(path: path)
    settings.overwrites = true
    let session = try camera.session(ScriptedDriver(try camera.frames(0..<30)))
    let output = try MovieFileOutput(session: session, settings: settings)
    _ = try output.record()
    #expect(throws: MediaError.self) { try output.record() }
    #expect(try Asset(path: path).videoTrack?.frameCount == 30)
  }

  @Test(.enabled(if: SmallDisk.canBeMade, "a small disk is mounted, which only root may"))
  func `A take on a full disk fails and leaves no file`() throws {
    let scratch = try Scratch()
    try #require(SmallDisk.mount(at: scratch.path))
    defer { SmallDisk.unmount(scratch.path) }
    // Fills the disk except for the last page, which is needed for the file name.
    var filled = 0
    let descriptor = open(scratch.file("full"), O_WRONLY | O_CREAT, 0o600)
    let block = [UInt8](repeating: 0, count: 4_096)
    while write(descriptor, block, block.count) == block.count { filled += 1 }
    close(descriptor)
    #expect(filled > 100)
    let camera = try ScriptedCamera(100)
    let error = #expect(throws: MediaError.self) {
      try camera.take(camera.frames(0..<100), to: scratch.file("take.mov"))
    }
    #expect(error?.code == .diskFull)
    #expect(try scratch.names() == ["full"])
  }

  @Test func `A take can be stopped from another thread`() throws {
    let scratch = try Scratch()
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let session = try CaptureSession(device: camera, format: camera.fastestFormat())
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("take.mov")))
    var stopper: BlockingThread?
    let report = try output.record { progress in
      if progress.stored >= 30, stopper == nil { stopper = try? BlockingThread { output.stop() } }
    }
    stopper?.join()
    #expect(report.stoppedBy == .stopped)
    #expect(report.ledger.isBalanced && report.isPlayable && report.ledger.stored >= 30)
  }
}
