// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// The slow-motion ranges that Samsung's camera appends to a movie.
struct SamsungMarkersTests {
  private func bytes(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }

  /// A trailer of blocks, each with a name and a text.
  private func trailer(_ blocks: (name: String, text: String)...) -> [UInt8] {
    var data: [UInt8] = []
    var starts: [(start: Int, size: Int)] = []
    for (name, text) in blocks {
      let block = [0, 0, 0x90, 0x08] + bytes(name.utf8.count) + Array((name + text).utf8)
      starts.append((data.count, block.count))
      data += block
    }
    var table = Array("SEFH".utf8) + bytes(105) + bytes(blocks.count)
    for (start, size) in starts {
      table += [0, 0, 0x90, 0x08] + bytes(data.count - start) + bytes(size)
    }
    return Array("mdat".utf8) + data + table + bytes(table.count) + Array("SEFT".utf8)
  }

  private let ranges = "1000:2000:4*2500:3000:1"

  @Test func `The level of a Samsung slow-motion range gives its speed`() throws {
    let tail = trailer(("Other", "x"), ("SlowMotion_Data", ranges))
    let markers = try #require(try SlowMotionMarkers(samsungTrailer: tail))
    #expect(
      markers.changes == [
        .init(try .of(1, 8), in: try .of(1, 2)),
        .init(.normal, in: try .of(5, 6, per: 2)),
      ])
    let source = try MediaSource(path: "a.mp4", duration: MediaTime(seconds: 4))
    #expect(try markers.composition(of: source).duration == MediaTime(seconds: 11))
  }

  @Test func `A Samsung clip stored slow is sped up outside slow ranges`() throws {
    let tail = trailer(("SlowMotion_Data", "8000:16000:4"))
    let eight = try Speed.of(8)
    let markers = try #require(try SlowMotionMarkers(samsungTrailer: tail, elsewhere: eight))
    #expect(markers.changes == [.init(.normal, in: try .of(8, 16))])
    let source = try MediaSource(path: "a.mp4", duration: MediaTime(seconds: 32))
    let composition = try markers.composition(of: source)
    #expect(
      composition.segments.map(\.description) == [
        "a.mp4 0/1..8/1 -> 0/1..1/1", "a.mp4 8/1..16/1 -> 1/1..9/1",
        "a.mp4 16/1..32/1 -> 9/1..11/1",
      ])
  }

  @Test func `Slow-motion ranges may touch but not overlap`() throws {
    let texts = (0..<20_000).reversed().map { "\($0 * 2):\($0 * 2 + 2):2" }
    let tail = trailer(("SlowMotion_Data", texts.joined(separator: "*")))
    #expect(try SlowMotionMarkers(samsungTrailer: tail)?.changes.count == 20_000)
    let overlapping = trailer(("SlowMotion_Data", (texts + ["7:8:2"]).joined(separator: "*")))
    #expect(throws: MediaError.self) { try SlowMotionMarkers(samsungTrailer: overlapping) }
  }

  @Test func `A damaged Samsung slow-motion trailer is refused`() throws {
    #expect(try SlowMotionMarkers(samsungTrailer: []) == nil)
    #expect(try SlowMotionMarkers(samsungTrailer: Array("a movie and no more".utf8)) == nil)
    #expect(try SlowMotionMarkers(samsungTrailer: trailer(("Other", "1:2:3"))) == nil)
    for text in ["1:2", "2000:1000:2", "0:1000:0", "0:1000:99", "a:b:c", "0:9:1*5:12:1"] {
      #expect(throws: MediaError.self, "\(text)") {
        try SlowMotionMarkers(samsungTrailer: trailer(("SlowMotion_Data", text)))
      }
    }
    let whole = trailer(("Other", "x"), ("SlowMotion_Data", ranges))
    var random = SeededGenerator(seed: 3)
    var readable = 0
    for number in 0..<RunSize.cases(1_000, full: 4_000) {
      var damaged = whole
      if number % 3 == 0 { damaged.removeFirst(Int.random(in: 0..<whole.count, using: &random)) }
      for _ in 0..<Int.random(in: 1...3, using: &random) where !damaged.isEmpty {
        damaged[Int.random(in: 0..<damaged.count, using: &random)] = .random(
          in: 0...255, using: &random)
      }
      do {
        if try SlowMotionMarkers(samsungTrailer: damaged) != nil { readable += 1 }
      } catch {
        #expect(error.code == .invalidProject)
      }
    }
    #expect(readable * 30 > RunSize.cases(1_000, full: 4_000))
  }
}
