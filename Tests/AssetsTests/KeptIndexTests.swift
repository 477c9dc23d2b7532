// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

@testable import OvercrankAssets

/// The frame index of a movie, saved in a file next to it.
struct KeptIndexTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func movie(_ container: String = "mov") throws -> String {
    var recipe = MovieRecipe.constant(60, count: 60, timescale: 60_000)
      .h264(gop: 12, reordered: true)
    recipe.container = container
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 48_000
    let path = directory.file("clip.\(container)")
    try recipe.write(to: path)
    return path
  }

  @Test(arguments: ["mov", "mp4"])
  func `A saved frame index avoids reading the packets again`(container: String) throws {
    let path = try movie(container)
    let plain = try Asset(path: path)
    #expect(plain.keptIndex == nil && !FileManager.default.fileExists(atPath: path + ".frameindex"))
    let first = try Asset(path: path, keepsIndex: true)
    #expect(first.keptIndex?.isWritten == true && first.keptIndex?.isUsed == false)
    let second = try Asset(path: path, keepsIndex: true)
    #expect(second.keptIndex?.isUsed == true && second.keptIndex?.isWritten == false)
    #expect(second.keptIndex?.refusal == nil)
    for asset in [first, second] {
      #expect(asset.videoTrack?.frames.entries == plain.videoTrack?.frames.entries)
      #expect(asset.duration == plain.duration)
      #expect(asset.audioTrack?.sampleCount == plain.audioTrack?.sampleCount)
      #expect(asset.audioTrack?.startSample == plain.audioTrack?.startSample)
    }
    let kept = try PacketIndexFile(parsing: try bytes(of: path + ".frameindex")).tracks
    let index = try AssetIndex(path, kept: kept)
    #expect(index.readCount == 0 && !index.isContradicted)
    var reader = try FrameReader(second)
    var plainReader = try FrameReader(plain)
    for number in [40, 7, 59] {
      let frame = try reader.mediaFrame(at: number).packedBytes()
      #expect(try frame == plainReader.mediaFrame(at: number).packedBytes())
    }
    #expect(try directory.names().count == 2)
  }

  @Test func `A saved index behind a symbolic link is never overwritten`() throws {
    let path = try movie()
    let (link, target) = (path + ".frameindex", directory.file("target"))
    _ = try Asset(path: path, keepsIndex: true)
    try FileManager.default.moveItem(atPath: link, toPath: target)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    #expect(try Asset(path: path, keepsIndex: true).keptIndex?.isUsed == true)
    var damaged = try bytes(of: target)
    damaged[damaged.count - 1] ^= 1
    _ = try directory.write(damaged, as: "target")
    let use = try #require(try Asset(path: path, keepsIndex: true).keptIndex)
    #expect(use.refusal == .damaged && !use.isWritten && use.writeFailure != nil)
    #expect(try bytes(of: target) == damaged)
  }

  @Test func `A saved index of another movie is refused and rewritten`() throws {
    let path = try movie()
    let original = try bytes(of: path)
    func open() throws -> Asset.KeptIndex? { try Asset(path: path, keepsIndex: true).keptIndex }
    #expect(try open()?.refusal == nil)
    let modified = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
    func put(_ bytes: [UInt8], keepsTime: Bool) throws {
      _ = try directory.write(bytes, as: "clip.mov")
      guard keepsTime, let modified else { return }
      try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: path)
    }
    // One byte of the media data is changed.
    var changed = original
    let data = try #require(changed.firstRange(of: Array("mdat".utf8)))
    changed[data.upperBound + 100] ^= 1
    try put(original + [0, 0, 0, 8, 0x66, 0x72, 0x65, 0x65], keepsTime: true)
    #expect(try open()?.refusal == .otherSize)
    try put(original, keepsTime: true)
    #expect(try open()?.refusal == .otherSize)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: path)
    #expect(try open()?.refusal == .otherModificationTime)
    #expect(try open()?.isUsed == true)
    try put(changed, keepsTime: false)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: path)
    let content = try open()
    #expect(content?.refusal == .otherContent && content?.isWritten == true)
    #expect(try open()?.isUsed == true)
  }

  @Test func `An unrelated file named like a saved index is not replaced`() throws {
    let path = try movie()
    _ = try directory.write(Array("notes\n".utf8), as: "clip.mov.frameindex")
    let asset = try Asset(path: path, keepsIndex: true)
    #expect(asset.keptIndex?.refusal == .otherKind && asset.keptIndex?.isWritten == false)
    #expect(asset.keptIndex?.writeFailure != nil)
    #expect(try bytes(of: path + ".frameindex") == Array("notes\n".utf8))
  }

  @Test func `A saved frame index with invalid numbers is refused`() throws {
    let path = try movie()
    let plain = try Asset(path: path, keepsIndex: true)
    let file = try bytes(of: path + ".frameindex")
    func refusal(_ change: (inout [UInt8]) -> Void) throws -> Asset.KeptIndex.Refusal? {
      var bytes = Array(file.dropLast(4))
      change(&bytes)
      let check = bytes.withUnsafeBytes { CRC32.checksum(of: $0) }
      withUnsafeBytes(of: check.littleEndian) { bytes.append(contentsOf: $0) }
      _ = try directory.write(bytes, as: "clip.mov.frameindex")
      let asset = try Asset(path: path, keepsIndex: true)
      #expect(asset.videoTrack?.frames.entries == plain.videoTrack?.frames.entries)
      return asset.keptIndex?.refusal
    }
    func put(_ number: Int64, at position: Int, _ bytes: inout [UInt8]) {
      withUnsafeBytes(of: number.littleEndian) {
        bytes.replaceSubrange(position..<position + 8, with: $0)
      }
    }
    let (tracks, packets) = (104, 128)
    #expect(try refusal { $0[8] = 9 } == .otherVersion)
    #expect(try refusal { $0[12] = 200 } == .damaged)
    #expect(try refusal { $0[tracks] = 7 } == .contradiction)
    #expect(try refusal { put(.max, at: tracks + 16, &$0) } == .damaged)
    #expect(try refusal { put(1 << 40, at: tracks + 8, &$0) } == .contradiction)
    #expect(try refusal { put(.max, at: packets, &$0) } == .damaged)
    #expect(try refusal { put(.min, at: packets + 16, &$0) } == .damaged)
    #expect(try refusal { put(99, at: packets + 24, &$0) } == .damaged)
    #expect(try refusal { $0.removeLast(32) } == .damaged)
    #expect(try refusal { $0.append(0) } == .damaged)
    var flipped = file
    flipped[packets] ^= 1
    _ = try directory.write(flipped, as: "clip.mov.frameindex")
    #expect(try Asset(path: path, keepsIndex: true).keptIndex?.refusal == .damaged)
    #expect(try Asset(path: path, keepsIndex: true).keptIndex?.isUsed == true)
  }

  @Test func `Truncated movies read equally with and without a saved index`() throws {
    let path = try movie()
    let whole = try bytes(of: path)
    _ = try directory.write(Array(whole.prefix(whole.count * 2 / 3)), as: "clip.mov")
    for _ in 0..<2 {
      let plain = Result { try Asset(path: path, allowsTruncation: true) }
      let kept = Result { try Asset(path: path, allowsTruncation: true, keepsIndex: true) }
      #expect(
        (try? plain.get())?.videoTrack?.frames.entries
          == (try? kept.get())?.videoTrack?.frames.entries)
      #expect((try? plain.get())?.truncation == (try? kept.get())?.truncation)
      let strict = #expect(throws: MediaError.self) { try Asset(path: path, keepsIndex: true) }
      #expect(strict?.code == .invalidData)
    }
  }
}
