// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Files that are not movies, or are incomplete.
///
/// Each gives a typed error and never a crash.
struct BadFileTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func expect(
    _ path: String, _ code: MediaError.Code, _ description: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    do {
      _ = try Asset(path: path)
      Issue.record("\(path) opened", sourceLocation: sourceLocation)
    } catch {
      #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
      #expect(error.message.contains(path), "\(error)", sourceLocation: sourceLocation)
      #expect(
        description.isEmpty || error.message.contains(description), "\(error)",
        sourceLocation: sourceLocation)
      #expect(!error.recoverySuggestion.isEmpty, sourceLocation: sourceLocation)
    }
  }

  @Test func `Error codes have stable raw values`() {
    #expect(MediaError.Code.fileNotFound.rawValue == "file_not_found")
    #expect(MediaError.Code.noPermission.rawValue == "no_permission")
    #expect(MediaError.Code.invalidData.rawValue == "invalid_data")
    #expect(MediaError.Code.outsideSource.rawValue == "outside_source")
  }

  @Test func `Missing and empty and non-movie files are refused`() throws {
    expect(directory.file("missing.mov"), .fileNotFound)
    expect(directory.file("missing/clip.mov"), .fileNotFound)
    expect(directory.path, .invalidData, "directory")
    expect("/dev/null", .invalidData)
    expect(try directory.write([], as: "empty.mov"), .invalidData, "empty")
    let text = Array("These are notes about a movie.\n".utf8)
    expect(try directory.write(text, as: "notes.mov"), .invalidData)
    var generator = SeededGenerator(seed: 1)
    let random = (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &generator) }
    expect(try directory.write(random, as: "random.mov"), .invalidData)
  }

  /// This test needs a user other than root, who may read every file.
  @Test(.enabled(if: getuid() != 0, "root may read every file"))
  func `An unreadable file gives a permission error`() throws {
    let path = try directory.write([1, 2, 3], as: "private.mov")
    chmod(path, 0)
    expect(path, .noPermission)
  }

  @Test func `A movie without tracks is refused`() throws {
    let header = [0, 0, 0, 20] + Array("ftypqt  ".utf8) + [0, 0, 2, 0] + Array("qt  ".utf8)
    var movie: [UInt8] = [0, 0, 0, 108] + Array("mvhd".utf8) + [UInt8](repeating: 0, count: 100)
    movie[8 + 12 + 2] = 3  // The timescale is about 1000.
    let box = [0, 0, 0, UInt8(movie.count + 8)] + Array("moov".utf8) + movie
    expect(try directory.write(header + box, as: "trackless.mov"), .invalidData)
  }

  @Test(arguments: ["mov", "mp4"], [false, true])
  func `A truncated movie reports the number of readable frames`(
    container: String, isReordered: Bool
  ) throws {
    var recipe = MovieRecipe.constant(240, count: 100)
    if isReordered { recipe = recipe.h264(gop: 25, reordered: true) }
    recipe.container = container
    recipe.hasIndexInFront = true
    let whole = directory.file("whole.\(container)")
    let packets = try recipe.write(to: whole)
    #expect(try Asset(path: whole).videoTrack?.frameCount == 100)
    let content = try bytes(of: whole)
    // The first case truncates the file by one byte, the second by about sixty packets.
    let tail = packets.suffix(60).map(\.count).reduce(0, +)
    for (missing, left) in [(1, 99), (tail, 40)] {
      let path = try directory.write(Array(content.dropLast(missing)), as: "cut.\(container)")
      expect(path, .invalidData, "is truncated: \(left) of 100 frames can be read")
    }
  }

  @Test func `A movie without an index is refused`() throws {
    let whole = directory.file("whole.mov")
    try MovieRecipe.constant(240, count: 100).write(to: whole)
    let content = try bytes(of: whole)
    let path = try directory.write(Array(content.prefix(content.count / 2)), as: "half.mov")
    expect(path, .invalidData)
  }

  @Test func `A movie with an unknown codec is refused`() throws {
    let whole = directory.file("whole.mov")
    try MovieRecipe.constant(240, count: 10).write(to: whole)
    var content = try bytes(of: whole)
    let name = Array("jpeg".utf8)
    var position = 0
    while position + 4 <= content.count {
      if Array(content[position..<position + 4]) == name {
        content.replaceSubrange(position..<position + 4, with: Array("zzzz".utf8))
      }
      position += 1
    }
    expect(try directory.write(content, as: "strange.mov"), .invalidData)
  }

  /// Changes random bytes or words in the index, and reads the files that still open.
  @Test(arguments: 0..<4)
  func `A damaged movie index gives an error or a readable movie`(part: Int) throws {
    var recipe = MovieRecipe.constant(240, count: 24)
    if part % 2 == 1 { recipe = recipe.h264(gop: 8, reordered: true) }
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 4_800
    recipe.audio?.codec = part < 2 ? "aac" : "pcm_s16le"
    recipe.fragmentMicroseconds = part == 3 ? 25_000 : nil
    let path = directory.file("audio.mov")
    try recipe.write(to: path)
    let content = try bytes(of: path)
    let index = try #require(content.firstRange(of: Array("moov".utf8)))
    var generator = SeededGenerator(seed: UInt64(part + 11))
    var opened = 0
    let extremes: [[UInt8]] = [
      [0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF], [0x80, 0, 0, 0],
      [0, 0, 0, 1], [0, 1, 0, 0],
    ]
    // In a fragmented file the index is spread over the file; without fragments it is at the end.
    let region = part == 3 ? 4..<content.count - 4 : index.lowerBound..<content.count - 4
    for number in 0..<75 {
      var damaged = content
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let position = Int.random(in: region, using: &generator)
        if Bool.random(using: &generator) {
          damaged[position] = UInt8.random(in: 0...255, using: &generator)
        } else {
          let word = extremes.randomElement(using: &generator) ?? []
          damaged.replaceSubrange(position..<position + 4, with: word)
        }
      }
      let path = try directory.write(damaged, as: "damaged-\(part)-\(number).mov")
      do throws(MediaError) {
        let asset = try Asset(path: path)
        opened += 1
        try Self.readAll(asset)
      } catch {
        #expect(!error.message.isEmpty && !error.code.rawValue.isEmpty)
      }
    }
    #expect(opened > 0)
  }

  /// Reads all properties and some samples of a file.
  private static func readAll(_ asset: Asset) throws(MediaError) {
    _ = asset.duration
    _ = asset.captureFrameRate
    _ = asset.frameTimingRows()
    if let video = asset.videoTrack {
      _ = video.frames.averageFrameRate
      _ = video.frames.isVariable
      var reader = try FrameReader(asset)
      for index in [0, video.frameCount / 2, video.frameCount - 1, 0] {
        _ = try reader.mediaFrame(at: index)
      }
    }
    if let audio = asset.audioTrack {
      var reader = try AudioReader(asset)
      _ = try reader.samples(from: -10, count: 2_000)
      _ = try reader.samples(from: audio.sampleCount - 100, count: 200)
    }
  }
}
