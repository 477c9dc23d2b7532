// SPDX-License-Identifier: Apache-2.0

import OvercrankAnalysis
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport

extension FuzzCases {
  /// Makes a movie with a time map of several segments and recordings, as bytes.
  static func mappedMovie(_ first: Asset, _ second: Asset, in directory: Scratch) throws -> [UInt8]
  {
    var composition = try Composition(first)
    let range = try TimeRange(
      start: MediaTime(microseconds: 100_000), end: MediaTime(microseconds: 250_000))
    try composition.scaleTimeRange(range, toDuration: MediaTime(seconds: 1))
    try composition.append(second, range: range)
    let settings = ExportSettings(
      path: directory.file("mapped.mov"),
      mode: .constant(FrameRate(60), RenderSettings(encoding: .mjpeg, sampling: .blend)))
    try ExportSession(composition, of: [first, second]).export(settings)
    return try bytes(of: settings.path)
  }

  /// Measures and exports a movie whose time map, or the note of it, is damaged.
  ///
  /// The digest is not damaged, so that the map counts as that of the movie.
  func damagedTimeMap(_ random: inout SeededGenerator) async throws -> String {
    var bytes = mapped
    let box = try start(of: "uuid", in: bytes) - 4
    if Int.random(in: 0..<3, using: &random) == 0 {
      // Without its box, the movie has the note alone.
      bytes.removeSubrange(box...)
      let note = try start(of: "[overcrank-time 1 ", in: bytes) + 18 + 16
      let length = bytes[note...].firstIndex(of: UInt8(ascii: "]")) ?? note + 1
      damage(&bytes, note..<length, &random)
    } else {
      // The box begins with its size, type and identity, its version, and the digest.
      damage(&bytes, box + 34..<bytes.count, &random)
    }
    let path = try directory.write(bytes, as: "damaged-map.mov")
    let asset = try Asset(path: path)
    let rows = asset.frameTimingRows()
    let clock = try asset.captureClock()
    let times = rows.indices.count { clock.seconds(ofFrame: $0) != nil }
    _ = try TimingAudit(of: asset, comparesImages: false, clock: clock)
    guard Bool.random(using: &random) else {
      return try "map of \(times) times, " + measure(asset, beside: assets[0], &random)
    }
    return try await "map of \(times) times, " + exports(Composition(asset), asset, &random)
  }

  private func damage(
    _ bytes: inout [UInt8], _ range: Range<Int>, _ random: inout SeededGenerator
  ) {
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let position = Int.random(in: range, using: &random)
      bytes[position] =
        [0, 1, 2, 3, 0x7F, 0x80, 0xFF, .random(in: 0...255, using: &random)]
        .randomElement(using: &random) ?? 0
    }
  }

  private func start(of text: String, in bytes: [UInt8]) throws -> Int {
    let wanted = Array(text.utf8)
    let found = (0..<max(0, bytes.count - wanted.count)).last {
      bytes[$0] == wanted[0] && bytes[$0..<$0 + wanted.count].elementsEqual(wanted)
    }
    guard let found else { throw WrongIndex(description: "the movie has no \(text)") }
    return found
  }
}
