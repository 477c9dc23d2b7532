// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat
import TestSupport
import Testing

/// The last samples and the sample descriptions of fragmented movies, from boxes alone.
struct LastSamplesTests {
  private func fullBox(_ type: UInt32, flags: UInt32, _ numbers: [UInt32]) -> [UInt8] {
    var bytes = BoxBytes()
    bytes.fullBox(type, version: 0, flags: flags) { box in
      for number in numbers { box.append(number) }
    }
    return bytes.bytes
  }

  private func box(_ types: [UInt32], _ contents: [UInt8]) -> [UInt8] {
    types.reversed().reduce(contents) { inside, type in
      var bytes = BoxBytes()
      bytes.box(type) { $0.append(bytes: inside) }
      return bytes.bytes
    }
  }

  /// A movie with two sample descriptions and a fragment for each `tfhd` box.
  private func movie(defaultIndex: UInt32, _ headers: [[UInt8]]) -> [UInt8] {
    let table = box(
      [BoxType.trackMedia, BoxType.mediaInformation, BoxType.sampleTable],
      fullBox(BoxType.sampleDescriptions, flags: 0, [2]))
    let track = box(
      [BoxType.track], fullBox(BoxType.trackHeader, flags: 3, [0, 0, 7]) + table)
    let extends = box(
      [BoxType.extends], fullBox(BoxType.trackExtends, flags: 0, [7, defaultIndex, 40, 0, 0]))
    let fragments = headers.flatMap {
      box(
        [BoxType.fragment, BoxType.trackFragment],
        $0 + fullBox(BoxType.trackRun, flags: 0, [1]))
    }
    return box([BoxType.movie], track + extends) + fragments
  }

  @Test func `Descriptions change only if a fragment uses another one`() throws {
    let scratch = try Scratch()
    let plain = fullBox(BoxType.trackFragmentHeader, flags: 0, [7])
    func named(_ index: UInt32) -> [UInt8] {
      fullBox(BoxType.trackFragmentHeader, flags: 0x02, [7, index])
    }
    /// A header with an offset of 64 bits before the description.
    func based(_ index: UInt32) -> [UInt8] {
      fullBox(BoxType.trackFragmentHeader, flags: 0x03, [7, 2, 2, index])
    }
    let cases: [(defaultIndex: UInt32, headers: [[UInt8]], changes: Bool)] = [
      (1, [plain, plain], false), (1, [plain, named(1), based(1)], false),
      (2, [plain], true), (2, [named(1), based(1)], false), (1, [named(2), plain], true),
      (1, [based(2), plain, plain], true), (1, [], false),
    ]
    for (number, entry) in cases.enumerated() {
      let path = try scratch.write(
        movie(defaultIndex: entry.defaultIndex, entry.headers), as: "\(number).mp4")
      let last = try #require(LastSamples(of: path))
      #expect(last.changesDescription == [entry.changes], "case \(number)")
      #expect(last.durations == [entry.headers.isEmpty ? nil : 40], "case \(number)")
    }
  }
}
