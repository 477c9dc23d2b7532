// SPDX-License-Identifier: Apache-2.0

import Foundation
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
@testable import OvercrankMovieFormat
@testable import OvercrankRecording

/// The recovery of unfinished recordings, compared with the frames that were stored.
struct RecoveryTests {
  /// A fragmented take that a killed process left on the disk, and its known contents.
  private struct UnfinishedTake {
    var bytes: [UInt8]
    /// The file length after each stored frame.
    var ends: [Int] = []
    var frames: [FrameObservation] = []
  }

  /// Writes a take of the scripted camera without ever finishing it.
  private static func unfinished(
    _ steps: [ScriptedDriver.Step], camera: ScriptedCamera, in scratch: Scratch,
    audio: Bool = false
  ) throws -> UnfinishedTake {
    let path = scratch.file("left.mov")
    let configuration = try camera.configuration(
      .passthrough, to: path, audio: audio ? try camera.audio(in: scratch) : nil)
    configuration.control.switchedOn.store(camera.base - 10_000, ordering: .relaxed)
    var unfinished = UnfinishedTake(bytes: [])
    do {
      var writer = TakeFileWriter(configuration, into: try configuration.settings.makeFile())
      for case .frameWithBytes(let frame, let image) in steps {
        var observation = frame
        observation.arrival += 500
        observation.outcome = image.count < 100 ? .corrupt : .taken
        image.withUnsafeBytes { bytes in
          _ = writer.store(QueuedFrame(observation: observation, bytes: bytes))
        }
        guard image.count >= 100 else { continue }
        unfinished.frames.append(frame)
        unfinished.ends.append(Int(writer.progress(queueFill: 0).bytes))
      }
      let isOver = writer.isOver
      #expect(!isOver)
    }
    unfinished.bytes = try TestSupport.bytes(of: path)
    return unfinished
  }

  /// The unfinished file with a journal in which no byte counts as synced to the disk.
  static func unsynced(_ bytes: [UInt8], _ scratch: Scratch) throws -> [UInt8] {
    var bytes = bytes
    let file = try MovieBoxes(opening: try scratch.write(bytes, as: "synced.mov"))
    let head = try #require(file.boxes().first { $0.type == BoxType.movie })
    for fragment in RecordedFragments(in: file, from: head.end).fragments {
      var journal = BoxBytes()
      FragmentJournal.write(
        capacity: 0, number: fragment.number, fragmentStart: fragment.start, syncedBytes: 0,
        into: &journal)
      let start = Int(fragment.start) + fragment.headSpace
      bytes.replaceSubrange((start + 24)..<(start + 56), with: journal.bytes[24..<56])
    }
    return bytes
  }

  /// The unfinished file with a changed record of one sample.
  private static func changing(
    _ index: Int, ofTrack track: Int, in bytes: [UInt8], _ scratch: Scratch,
    _ change: (inout StoredSample) -> Void
  ) throws -> [UInt8] {
    var bytes = bytes
    let file = try MovieBoxes(opening: try scratch.write(bytes, as: "whole.mov"))
    let head = try #require(file.boxes().first { $0.type == BoxType.movie })
    var number = 0
    for fragment in RecordedFragments(in: file, from: head.end).fragments {
      var position = Int(fragment.start) + fragment.headSpace + FragmentJournal.headBytes
      for record in TakeRecord.list(Array(bytes[position..<Int(fragment.mediaStart) - 8])) {
        if case .sample(var sample) = record, sample.track == track {
          if number == index {
            change(&sample)
            var changed: [UInt8] = []
            TakeRecord.sample(sample).write(to: &changed)
            bytes.replaceSubrange(position..<position + changed.count, with: changed)
            return bytes
          }
          number += 1
        }
        position += TakeRecord.byteCount
      }
    }
    throw MediaError(.invalidData, "the track has too few samples")
  }

  private static func recovered(
    _ bytes: [UInt8], _ scratch: Scratch
  ) throws -> (report: RecoveryReport, path: String) {
    let path = try scratch.write(bytes, as: "cut.mov")
    return (try MovieRecovery.recover(path), path)
  }

  @Test func `Recovers every frame stored in an unfinished movie`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let unfinished = try Self.unfinished(
      try camera.frames(0..<130), camera: camera, in: scratch, audio: true)
    let (report, path) = try Self.recovered(unfinished.bytes, scratch)
    // Three fragments of 150 ms are closed, the fourth is open.
    #expect(report.frameCountBefore == 108)
    #expect(report.frameCount == 130 && report.isPlayable)
    #expect(report.lostFrameCount == 0 && report.lostDuration.wholeNanoseconds == 0)
    let asset = try Asset(path: path)
    #expect(try paintedNumbers(asset) == (0..<130).map { $0 })
    let times = unfinished.frames.map { $0.microseconds * 1_000 }
    #expect(asset.frameTimingRows().map(\.captureTime?.wholeNanoseconds) == times)
    #expect(asset.audioTrack?.codec == .aac)
    #expect(try !holdsBox("moof", path))
    // An intact file is not changed.
    let before = try bytes(of: path)
    let again = try MovieRecovery.recover(path)
    #expect(again.wasIntact && again.frameCount == 130)
    #expect(try bytes(of: path) == before)
  }

  @Test func `Recovery keeps the decode-only frames of a clip hidden`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let images = try camera.streamFrames(140, in: scratch)
    let path = scratch.file("left.mov")
    var configuration = try camera.configuration(
      to: path, delivers: .h264
    ) { $0.audioCodec = .pcm }
    configuration.beginsWithStream = false
    do {
      var writer = TakeFileWriter(configuration, into: try configuration.settings.makeFile())
      func frame(_ number: Int, _ bytes: UnsafeRawBufferPointer) throws -> QueuedFrame {
        QueuedFrame(observation: try camera.observation(Int64(number)), bytes: bytes)
      }
      // The clip begins with frame 10, which depends on the ten frames before it.
      let leads = images[..<10].map { image in
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: image.count, alignment: 1)
        copy.copyBytes(from: image)
        return copy
      }
      defer { for lead in leads { lead.deallocate() } }
      let frames = try leads.enumerated().map { try frame($0, UnsafeRawBufferPointer($1)) }
      let none = UnsafeRawBufferPointer(start: nil, count: 0)
      writer.lead(in: frames, to: try frame(10, none).observation)
      for number in 10..<140 {
        try images[number].withUnsafeBytes { _ = writer.store(try frame(number, $0)) }
      }
      let isOver = writer.isOver
      #expect(!isOver)
    }
    let (report, recovered) = try Self.recovered(try bytes(of: path), scratch)
    #expect(report.frameCount == 130 && report.isPlayable)
    #expect(report.ledger?.stored == 130)
    #expect(report.ledger?.isBalanced == true)
    #expect(report.duration.wholeNanoseconds == 541_667_000)
    let asset = try Asset(path: recovered)
    #expect(try paintedNumbers(asset) == (10..<140).map { $0 })
    #expect(asset.duration == (MediaTime(541_667, over: 1_000_000)))
  }

  @Test func `Recovery restores the frame counts and gaps of a take`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    var steps = try camera.frames(2..<80)
    steps[30] = .frameWithBytes(try camera.observation(32), [1, 2, 3])
    steps.removeSubrange(50..<53)
    let unfinished = try Self.unfinished(steps, camera: camera, in: scratch)
    let (report, path) = try Self.recovered(unfinished.bytes, scratch)
    let ledger = try #require(report.ledger)
    #expect(ledger.isBalanced)
    #expect(ledger.stored == 74 && ledger.corrupt == 1 && ledger.lostStart == 2)
    #expect(ledger.lostDevice == 3 && ledger.expected == 80)
    #expect(report.gaps.map(\.afterIndex) == [-1, 29, 48])
    #expect(try throughJSON(report) == report)
    #expect(report.gaps.map(\.cause) == [.lostStart, .corrupt, .lostDevice])
    let input = try camera.configuration(to: path).input
    #expect(report.device == input.device.address && report.mode == input.modeName)
    let records = try #require(LedgerBox.read(from: path))
    #expect(records.count == 75)
    #expect(
      records.filter { $0.outcome == .taken }.map(\.sequence) == unfinished.frames.map(\.sequence))
    let taken = records.filter { $0.outcome == .taken }
    #expect(LedgerBox.takenTimes(from: path) == taken.map(\.microseconds))
    let lines = try Asset(path: path).frameTimingRows()
    #expect(lines.map(\.sequence) == unfinished.frames.map { Int64($0.sequence) })
  }

  @Test func `Recovers all whole frames of a movie truncated at any byte`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let unfinished = try Self.unfinished(try camera.frames(0..<50), camera: camera, in: scratch)
    var random = SeededGenerator(seed: 11)
    for _ in 0..<150 {
      let end = Int.random(in: 0...unfinished.bytes.count, using: &random)
      let whole = unfinished.ends.count { $0 <= end }
      let path = try scratch.write(Array(unfinished.bytes[..<end]), as: "cut.mov")
      do {
        let report = try MovieRecovery.recover(path)
        #expect(report.frameCount == Int64(whole), "\(end)")
        #expect(report.ledger.map { $0.isBalanced && $0.stored == Int64(whole) } == true, "\(end)")
        #expect(try Asset(path: path).videoTrack?.frameCount == whole)
      } catch {
        #expect(whole == 0, "\(end): \(error)")
        #expect(try bytes(of: path) == Array(unfinished.bytes[..<end]))
      }
    }
  }

  @Test func `Recovers only intact frames after a power cut`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let unfinished = try Self.unfinished(
      try camera.frames(0..<130), camera: camera, in: scratch, audio: true)
    let images = try camera.images(0..<130)
    let unsynced = try Self.unsynced(unfinished.bytes, scratch)
    var random = SeededGenerator(seed: 4)
    for round in 0..<120 {
      var bytes = unsynced
      // Only the sectors of the file header are guaranteed to be on the disk.
      let sectors = bytes.count / 512
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let sector = Int.random(in: 8..<sectors, using: &random)
        for position in (sector * 512)..<(sector * 512 + 512) { bytes[position] = 0 }
      }
      let path = try scratch.write(bytes, as: "cut.mov")
      guard let report = try? MovieRecovery.recover(path) else {
        // A file without a whole frame can still be opened.
        _ = try Demuxer(opening: path, probes: false)
        continue
      }
      var demuxer = try Demuxer(opening: path)
      var found: [[UInt8]] = []
      while let packet = try demuxer.nextPacket() {
        if packet.trackIndex == 0 { found.append(packet.withBytes { [UInt8]($0) }) }
      }
      let isRight = found == Array(images.prefix(found.count))
      #expect(isRight, "\(round)")
      #expect(report.frameCount == Int64(found.count) && report.ledger?.isBalanced == true)
    }
  }

  @Test func `The ledger keeps frames whose samples are torn`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let unfinished = try Self.unfinished(try camera.frames(0..<130), camera: camera, in: scratch)
    var bytes = try Self.unsynced(unfinished.bytes, scratch)
    bytes[unfinished.ends[10] - 9] ^= 1
    let (report, path) = try Self.recovered(bytes, scratch)
    #expect(report.frameCount == 10 && report.lostFrameCount == 120)
    let records = try #require(LedgerBox.read(from: path))
    #expect(records.map(\.sequence) == unfinished.frames.map(\.sequence))
  }

  @Test func `Recovery leaves a file that it cannot repair unchanged`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let unfinished = try Self.unfinished(try camera.frames(0..<45), camera: camera, in: scratch)
    var random = SeededGenerator(seed: 23)
    for round in 0..<200 {
      var bytes = unfinished.bytes
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        // Most changes are at the start of the file, where boxes begin.
        let position = Int.random(in: 0..<4_000, using: &random)
        let start = round.isMultiple(of: 3) ? position * bytes.count / 4_000 : position
        bytes[start] = UInt8.random(in: 0...255, using: &random)
      }
      let path = try scratch.write(bytes, as: "cut.mov")
      do throws(MediaError) {
        let report = try MovieRecovery.recover(path)
        #expect(report.frameCount >= 0)
      } catch {
        #expect([.invalidData, .nothingToRecover].contains(error.code), "\(round): \(error)")
        let isEmptied = error.message.contains("it is now an empty movie")
        #expect(try isEmptied || TestSupport.bytes(of: path) == bytes, "\(round): \(error)")
      }
    }
    for foreign in [[], [0, 0, 0, 8], Array("no movie at all, only text".utf8)] as [[UInt8]] {
      let path = try scratch.write(foreign, as: "foreign.mov")
      let error = #expect(throws: MediaError.self) { try MovieRecovery.recover(path) }
      #expect(error?.code == .invalidData)
      #expect(try bytes(of: path) == foreign)
    }
    let missing = #expect(throws: MediaError.self) {
      try MovieRecovery.recover(scratch.file("missing.mov"))
    }
    #expect(missing?.code == .fileNotFound)
  }

  @Test(arguments: [Int64.min, -1, 0, 1 << 61, 1 << 62, .max])
  func `Recovery refuses sample times that no recording has`(ticks: Int64) throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let unfinished = try Self.unfinished(
      try camera.frames(0..<130), camera: camera, in: scratch, audio: true)
    // The first sample may be at zero.
    for (track, index) in [(0, 7), (0, 129), (1, 5)] + (ticks == 0 ? [] : [(0, 0)]) {
      let bytes = try Self.changing(index, ofTrack: track, in: unfinished.bytes, scratch) {
        $0.ticks = ticks
      }
      let path = try scratch.write(bytes, as: "cut.mov")
      let error = #expect(throws: MediaError.self) { try MovieRecovery.recover(path) }
      #expect(error?.code == .invalidData)
      let isUnchanged = try TestSupport.bytes(of: path) == bytes
      #expect(isUnchanged, "sample \(index) of track \(track)")
    }
  }

  @Test func `A take killed before its first frame has nothing to recover`() throws {
    let scratch = try Scratch()
    let path = try scratch.write(MovieIndex.emptyMovie, as: "a.mov")
    #expect(try Demuxer(opening: path).tracks.isEmpty)
    let error = #expect(throws: MediaError.self) { try MovieRecovery.recover(path) }
    #expect(error?.code == .nothingToRecover)
    #expect(error?.message.contains("before its first frame") == true)
  }

  @Test func `Refuses to recover a file that is still being recorded`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let path = scratch.file("take.mov")
    var errors: [MediaError.Code?] = []
    let (report, _) = try camera.take(
      camera.frames(0..<60), to: path,
      progress: { progress in
        guard progress.stored >= 40, errors.isEmpty else { return }
        do throws(MediaError) { _ = try MovieRecovery.recover(path) } catch {
          errors.append(error.code)
        }
      })
    #expect(errors == [.beingRecorded])
    #expect(report.isPlayable && report.ledger.stored == 60)
  }

  @Test func `A damaged byte in the recovery record of a frame is detected`() {
    var random = SeededGenerator(seed: 8)
    for _ in 0..<300 {
      func any<Number: FixedWidthInteger>() -> Number {
        Number.random(in: .min ... .max, using: &random)
      }
      var frame = FrameObservation(sequence: any(), microseconds: any())
      frame.overrunsBefore = Bool.random(using: &random) ? any() : nil
      (frame.microseconds, frame.arrival) = (any(), any())
      frame.outcome = FrameOutcome(rawValue: UInt8.random(in: 1...6, using: &random)) ?? .taken
      frame.oldestReturn = any()
      frame.isClockJump = Bool.random(using: &random)
      frame.unnoted = Int64(any() as UInt32)
      let sample = StoredSample(
        track: Int(any() as UInt8), byteCount: Int(any() as UInt32), ticks: any(),
        duration: Int64(any() as UInt32), isKeyFrame: Bool.random(using: &random), check: any())
      var bytes: [UInt8] = []
      TakeRecord.frame(frame).write(to: &bytes)
      TakeRecord.sample(sample).write(to: &bytes)
      #expect(TakeRecord.list(bytes) == [.frame(frame), .sample(sample)])
      let taken = frame.outcome == .taken ? [frame.microseconds] : []
      #expect(TakeRecord.takenTimes(bytes, count: 1) == taken)
      #expect(TakeRecord.takenTimes(bytes, count: 2) == nil)
      #expect(TakeRecord.takenTimes(bytes.reversed(), count: 1) == nil)
      bytes[Int.random(in: 56..<112, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      #expect(TakeRecord.list(bytes) == [.frame(frame)])
      #expect(TakeRecord.takenTimes(bytes, count: 1) == taken)
    }
  }
}
