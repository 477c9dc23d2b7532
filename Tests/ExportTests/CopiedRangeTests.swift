// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankRetiming
import TestSupport
import Testing

/// Packets that the kernel copies must make the same movie as packets that the program reads and
/// writes.
struct CopiedRangeTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A movie of two seconds at 240 fps, with audio for Motion JPEG.
  private func asset(_ kind: String) throws -> Asset {
    var recipe = MovieRecipe.constant(240, count: 480)
    if kind == "mjpeg" {
      recipe.audio = MovieRecipe.Audio()
      recipe.audio?.sampleCount = 96_000
      recipe.audio?.clicks = [12_000, 60_000]
    } else {
      recipe = recipe.h264(gop: 60, reordered: kind == "reordered")
    }
    return try .made(recipe, in: directory)
  }

  private func export(
    _ composition: Composition, of asset: Asset, to path: String, copiesRanges: Bool = true
  ) throws -> String {
    var session = ExportSession(composition, of: asset)
    session.copiesRanges = copiesRanges
    var settings = ExportSettings(path: path, mode: .passthrough())
    settings.audioTimePitchAlgorithm = .varispeed
    settings.overwrites = true
    return try session.export(settings).path
  }

  private struct Stored: Equatable {
    let bytes: [UInt8]
    let times: [Int64?]
    let flags: [Bool]
  }

  private func packets(_ path: String) throws -> [[Stored]] {
    var demuxer = try Demuxer(opening: path)
    var packets: [[Stored]] = demuxer.tracks.map { _ in [] }
    while let packet = try demuxer.nextPacket() {
      packets[packet.trackIndex].append(
        Stored(
          bytes: packet.withBytes { [UInt8]($0) },
          times: [packet.pts, packet.dts, packet.duration],
          flags: [packet.isKeyFrame, packet.isDiscarded, packet.isCorrupt]))
    }
    return packets
  }

  /// The bytes of the index boxes, except for boxes with packet positions.
  private func tables(_ path: String) throws -> [[UInt8]] {
    let file = try MovieBoxes(opening: path, forWriting: false)
    var found: [[UInt8]] = []
    func read(_ start: Int64, _ end: Int64) {
      var start = start
      while let box = file.box(at: start, before: end) {
        let containers = [
          BoxType.movie, BoxType.track, BoxType.trackMedia, BoxType.mediaInformation,
          BoxType.sampleTable,
        ]
        let positions = [BoxType.chunkOffsets, BoxType.chunkOffsets64, BoxType.sampleToChunk]
        if containers.contains(box.type) {
          read(box.start + box.headBytes, box.end)
        } else if ![BoxType.media, BoxType.free].contains(box.type), !positions.contains(box.type) {
          found.append(file.bytes(of: box) ?? [])
        }
        start = box.end
      }
    }
    read(0, file.byteCount)
    return found
  }

  @Test(arguments: ["mjpeg", "h264", "reordered"])
  func `Copying packets in kernel or user space gives equal movies`(kind: String) throws {
    let asset = try asset(kind)
    #expect(PacketLayout(asset)?.locations.count == 480)
    var cut = Composition()
    for part in [try range(1_100, 1_900), try range(250, 600)] {
      try cut.insertTimeRange(part, of: asset.mediaSource(), at: cut.duration)
    }
    for composition in [try asset.retimed([(range(500, 1_000), speed(1, 8))]), cut] {
      let copied = try export(composition, of: asset, to: directory.file("copied.mov"))
      let written = try export(
        composition, of: asset, to: directory.file("written.mov"), copiesRanges: false)
      #expect(try packets(copied) == packets(written))
      #expect(try tables(copied) == tables(written))
    }
  }

  @Test func `A passthrough export from tmpfs to disk keeps every packet`() throws {
    let asset = try asset("mjpeg")
    let memory = "/dev/shm/overcrank-\(getpid())-copied.mov"
    defer { unlink(memory) }
    let composition = try asset.retimed([(range(500, 1_000), speed(1, 8))])
    let there = try export(composition, of: asset, to: memory)
    #expect(try frameBytes(there) == frameBytes(asset.path))
    let inMemory = try Asset(path: there)
    let back = try export(Composition(inMemory), of: inMemory, to: directory.file("back.mov"))
    #expect(try packets(back) == packets(there))
  }

  @Test func `A source truncated during an export leaves no output file`() throws {
    let asset = try asset("mjpeg")
    let size = try RandomAccessFile(opening: asset.path, forWriting: false).count()
    let session = ExportSession(try Composition(asset), of: asset)
    let settings = ExportSettings(path: directory.file("out.mov"), mode: .passthrough())
    let error = #expect(throws: MediaError.self) {
      _ = try session.export(
        settings,
        progress: { done, _ in
          if done == 10 { truncate(asset.path, off_t(size / 2)) }
        })
    }
    #expect(error?.code == .unsupportedSource)
    #expect(error?.message.contains(asset.path) == true)
    #expect(access(settings.path, F_OK) != 0)
  }

  @Test(.enabled(if: SmallDisk.canBeMade, "a small disk is mounted, which only root may"))
  func `A passthrough export to a full disk leaves no output file`() throws {
    let asset = try asset("mjpeg")
    let size = try RandomAccessFile(opening: asset.path, forWriting: false).count()
    try #require(size > 120_000)
    let scratch = try Scratch()
    try #require(SmallDisk.mount(at: scratch.path))
    defer { SmallDisk.unmount(scratch.path) }
    try WholeFile.write(
      [UInt8](repeating: 1, count: 2_097_152 - 80_000), to: scratch.file("ballast"),
      overwrites: false)
    let error = #expect(throws: MediaError.self) {
      try export(Composition(asset), of: asset, to: scratch.file("out.mov"))
    }
    #expect(error?.code == .diskFull)
    #expect(access(scratch.file("out.mov"), F_OK) != 0)
  }

  @Test func `Holes in a sparse source file are exported as zeros`() throws {
    let source = directory.file("holes")
    let bytes = [UInt8](unsafeUninitializedCapacity: 300_000) { buffer, count in
      for index in 0..<300_000 { buffer[index] = UInt8(truncatingIfNeeded: index &* 31 >> 3) }
      count = 300_000
    }
    let target = directory.file("target")
    for path in [source, target] {
      let made = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
      try #require(made >= 0)
      close(made)
    }
    let holes = try RandomAccessFile(opening: source)
    try holes.write(bytes, at: 1_000_000)
    let file = try RandomAccessFile(opening: target)
    for blockBytes in [nil, 4_096] as [Int64?] {
      let copied = try file.copy(
        600_000, from: holes.file, at: 800_001, to: 1_001, blockBytes: blockBytes)
      #expect(copied == 499_999)
      #expect(file.read(499_999, at: 1_001) == holes.read(499_999, at: 800_001))
    }
    #expect(try file.copy(10, from: holes.file, at: 2_000_000, to: 0, blockBytes: 4_096) == 0)
    #expect(file.read(1_001, at: 0).allSatisfy { $0 == 0 })
  }
}
