// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport

extension FuzzCases {
  /// The error for a printed line that contains control characters.
  struct ControlledTerminal: Error, CustomStringConvertible {
    let description: String
  }

  private static let extremes: [UInt32] = [
    0, 1, 2, 7, 8, 9, 16, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFF8, 0xFFFF_FFFF,
  ]

  /// Reads an input that was made to crash a program, or to keep it busy for a long time.
  func hostile(_ random: inout SeededGenerator) throws -> String {
    switch Int.random(in: 0..<6, using: &random) {
    case 0: try hostileBoxes(&random)
    case 1: try hostileMetadata(&random)
    case 2: try hostileSidecar(&random)
    case 3: try hostileTrailer(&random)
    case 4: try hostileProject(&random)
    default: try hostileName(&random)
    }
  }

  /// A movie with nested, overlapping or empty boxes after its own boxes, or in its index.
  private func hostileBoxes(_ random: inout SeededGenerator) throws -> String {
    let movie = movies[Int.random(in: 0..<movies.count, using: &random)]
    let types = [
      BoxType.movie, BoxType.track, BoxType.trackMedia, BoxType.mediaInformation,
      BoxType.sampleTable, BoxType.free, BoxType.uuid, BoxType.fragment, BoxType.edits,
    ]
    let count = Int.random(in: 1...20_000, using: &random)
    let kind = Int.random(in: 0..<3, using: &random)
    let type = types.randomElement(using: &random) ?? BoxType.free
    var boxes = BoxBytes()
    for number in 0..<count {
      switch kind {
      case 0: boxes.append(UInt32((count - number) * 8))
      case 1: boxes.append(UInt32(8))
      default: boxes.append(Self.extremes.randomElement(using: &random) ?? 8)
      }
      boxes.append(kind == 0 ? type : types.randomElement(using: &random) ?? type)
    }
    let path = try directory.write(movie.bytes + boxes.bytes, as: "h-\(movie.name)")
    _ = SampleTables(of: path)
    _ = TimedMetadataReader.read(from: path)
    let asset = try Asset(path: path, allowsTruncation: true)
    _ = asset.frameTimingRows()
    return "boxes of kind \(kind) in \(movie.name)"
  }

  /// A track of timed metadata whose tables contain random numbers.
  private func hostileMetadata(_ random: inout SeededGenerator) throws -> String {
    func number() -> UInt32 {
      Bool.random(using: &random)
        ? .random(in: 0...40, using: &random) : Self.extremes.randomElement(using: &random) ?? 0
    }
    func numbers(_ count: Int) -> [UInt32] { (0..<count).map { _ in number() } }
    func table(_ box: inout BoxBytes, _ type: UInt32, _ values: [UInt32]) {
      box.fullBox(type, version: UInt8(values.count % 2), flags: 0) { box in
        for value in values { box.append(value) }
      }
    }
    let rows = Int.random(in: 0..<200, using: &random)
    var bytes = BoxBytes()
    bytes.box(BoxType.media) { box in
      box.box(1) { $0.append(bytes: Array(repeating: 0xFF, count: Int(number() % 64))) }
    }
    bytes.box(BoxType.movie) { movie in
      table(&movie, BoxType.movieHeader, numbers(6))
      movie.box(BoxType.track) { track in
        track.box(BoxType.edits) { table(&$0, BoxType.editList, numbers(8)) }
        track.box(BoxType.trackMedia) { media in
          table(&media, BoxType.mediaHeader, [0, 0, 600, 0, 0])
          media.fullBox(BoxType.handler, version: 0, flags: 0) { box in
            for value in [0, BoxType.metadataHandler, 0, 0, 0] { box.append(value) }
          }
          media.box(BoxType.mediaInformation) { information in
            information.box(BoxType.sampleTable) { samples in
              samples.fullBox(BoxType.sampleDescriptions, version: 0, flags: 0) { box in
                box.append(UInt32(1))
                box.box(BoxType.boxedMetadata) { entry in
                  entry.append(UInt64(1))
                  entry.box(BoxType.metadataKeys) { keys in
                    keys.box(1) { key in
                      key.box(BoxType.keyDeclaration) { $0.append(bytes: Array("mdtax".utf8)) }
                      key.box(BoxType.keyDataType) { box in
                        box.append(UInt32(0))
                        box.append(UInt32.random(in: 0...80, using: &random))
                      }
                    }
                  }
                }
              }
              table(&samples, BoxType.timeToSample, numbers(rows))
              table(&samples, BoxType.sampleToChunk, numbers(rows))
              table(&samples, BoxType.sampleSizes, numbers(rows))
              table(&samples, BoxType.chunkOffsets, numbers(rows))
            }
          }
        }
      }
    }
    let path = try directory.write(bytes.bytes, as: "h-metadata.mov")
    return "metadata with \(TimedMetadataReader.read(from: path).count) values"
  }

  /// An iPhone sidecar file with a random number of slow-motion regions.
  private func hostileSidecar(_ random: inout SeededGenerator) throws -> String {
    func time(_ ticks: Int64) -> [String: Int64] {
      let values: [Int64] = [ticks, 0, -1, .max, .min, 1 << 40]
      let isExtreme = Int.random(in: 0..<2_000, using: &random) == 0
      return [
        "value": isExtreme ? values.randomElement(using: &random) ?? 0 : ticks,
        "timescale": 600_000,
      ]
    }
    let count = Int64.random(in: 0...4_000, using: &random)
    let regions = (0..<count).map { ["timeRange": ["start": time($0 * 60), "duration": time(30)]] }
    let rate = [0.125, 0.5, -1, 1e300, .nan, .infinity, 1e-300].randomElement(using: &random) ?? 1
    let motion: [String: Any] = ["rate": rate, "regions": regions]
    let inner = try PropertyListSerialization.data(
      fromPropertyList: ["slowMotion": motion], format: .binary, options: 0)
    let outer: [String: Any] = [
      "adjustmentFormatIdentifier": "com.apple.video.slomo", "adjustmentData": inner,
    ]
    let text = try PropertyListSerialization.data(
      fromPropertyList: outer, format: .xml, options: 0)
    let markers = try SlowMotionMarkers(aae: String(decoding: text, as: UTF8.self))
    return try "sidecar \(markers.composition(of: assets[0].mediaSource()).segments.count)"
  }

  /// A Samsung trailer with random numbers.
  private func hostileTrailer(_ random: inout SeededGenerator) throws -> String {
    let ranges = (0..<Int.random(in: 0...20_000, using: &random)).map { number in
      Int.random(in: 0..<4_000, using: &random) == 0
        ? "\(Int64.max):\(Int64.min):\(number)"
        : "\(number * 2):\(number * 2 + 1):\(number % 4 + 1)"
    }
    let name = Array("SlowMotion_Data".utf8)
    let block =
      [0, 0, 0x90, 8] + Self.bytes(UInt32(name.count)) + name
      + Array(ranges.shuffled(using: &random).joined(separator: "*").utf8)
    func size(_ value: Int) -> [UInt8] {
      Int.random(in: 0..<8, using: &random) > 0
        ? Self.bytes(UInt32(value)) : Self.bytes(Self.extremes.randomElement(using: &random) ?? 0)
    }
    let table =
      Array("SEFH".utf8) + size(105) + size(1) + [0, 0, 0x90, 8] + size(block.count)
      + size(block.count)
    let tail = block + table + size(table.count) + Array("SEFT".utf8)
    let markers = try SlowMotionMarkers(samsungTrailer: tail)
    return try "trailer \(markers?.composition(of: assets[0].mediaSource()).segments.count ?? 0)"
  }

  private static func bytes(_ number: UInt32) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  /// A project with extreme numbers, and with compound clips nested in each other.
  private func hostileProject(_ random: inout SeededGenerator) throws -> String {
    func number() -> String {
      [
        "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "99999999999999999999",
        "1e308", "-1e308", "nan", "inf", "0.1", "2147483648", "1/0", "\u{1B}[2J",
      ].randomElement(using: &random) ?? "0"
    }
    func element(_ depth: Int) -> String {
      let names = ["gap", "asset-clip", "ref-clip", "clip", "video", "audition", "spine"]
      let name = names.randomElement(using: &random) ?? "gap"
      var text =
        "<\(name) ref=\"\(["r1", "m0", "m1", "m2"].randomElement(using: &random) ?? "r1")\""
      for key in ["lane", "offset", "start", "duration"] where Bool.random(using: &random) {
        let isWild = Int.random(in: 0..<6, using: &random) == 0
        let unit = key == "lane" ? "" : "s"
        text +=
          " \(key)=\"\(isWild ? number() : "\(Int.random(in: 0...2, using: &random))")\(unit)\""
      }
      guard depth < 5 else { return text + "/>" }
      let inner = (0..<Int.random(in: 0...3, using: &random)).map { _ in element(depth + 1) }
      return text + ">\(inner.joined())</\(name)>"
    }
    let media = (0..<3).map {
      "<media id=\"m\($0)\"><sequence duration=\"1s\"><spine>\(element(1))\(element(1))</spine></sequence></media>"
    }
    let text = """
      <?xml version="1.0"?><fcpxml version="1.9"><resources>
      <asset id="r1" src="a.mov" start="0s" duration="\(number())s" hasVideo="1" hasAudio="1"/>
      \(media.joined())</resources><library><event><project name="\(number())">
      <sequence duration="1s"><spine>\(element(0))\(element(0))</spine></sequence></project></event>
      </library></fcpxml>
      """
    let read = try EditingProject(parsing: text) { (_) throws(MediaError) in
      try assets[0].mediaSource()
    } timeCodeRate: { (_) throws(MediaError) in
      nil
    }
    return "project of \(read.composition.segments.count) segments"
  }

  /// A printed line about a file name of random bytes.
  private func hostileName(_ random: inout SeededGenerator) throws -> String {
    let bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in
      [UInt8.random(in: 0...255, using: &random), 0x1B, 0x9B, 0xC2, 0xE2]
        .randomElement(using: &random) ?? 0
    }
    let name = String(systemBytes: bytes)
    try check(name, shownAs: name.terminalBytes)
    return "name of \(bytes.count) bytes"
  }

  /// Throws if a name is printed with characters that control a terminal.
  func check(_ name: String, shownAs shown: [UInt8]) throws {
    // A byte inside a longer character may look like a control character.
    let text = String(decoding: shown, as: UTF8.self)
    guard text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
      throw ControlledTerminal(description: "\(name.systemBytes) is shown as \(shown)")
    }
  }
}
