// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// The time maps of a finished movie: a `uuid` box after the media data, as ``LedgerBox``.
///
/// A movie that shows several others side by side has a map for each of these panes.
package struct TimeMapBox: Hashable, Sendable {
  /// The part of the frame that a map is for, in pixels.
  package struct Pane: Hashable, Sendable {
    package var (x, y, width, height): (Int, Int, Int, Int)

    package init(x: Int, y: Int, width: Int, height: Int) {
      (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
  }

  /// The code of a map, and its part of the frame; nil for the whole frame.
  package struct Entry: Hashable, Sendable {
    package let pane: Pane?
    package let code: [UInt8]

    package init(pane: Pane? = nil, code: [UInt8]) { (self.pane, self.code) = (pane, code) }
  }

  static let identity: [UInt8] = [
    0x54, 0x1F, 0xA6, 0x0B, 0x93, 0x2C, 0x4E, 0x5D, 0x8F, 0x61, 0x6F, 0x76, 0x65, 0x72, 0x63, 0x72,
  ]
  private static let version: UInt16 = 1
  private static let headBytes = 24 + 2 + 8
  /// The size up to which a box is read.
  private static let largestSize: Int64 = 1 << 28

  /// The digest of the movie that the maps belong to.
  package let digest: SampleDigest
  /// The maps; the first is that of the whole frame, or of the first pane.
  package let entries: [Entry]

  package init(digest: SampleDigest, entries: [Entry]) {
    (self.digest, self.entries) = (digest, entries)
  }

  /// The bytes of the box.
  package var bytes: [UInt8] {
    var box = BoxBytes()
    box.box(BoxType.uuid) { box in
      box.append(bytes: Self.identity)
      box.append(Self.version)
      box.append(digest.rawValue)
      var writer = NumberWriter()
      writer.append(UInt64(entries.count))
      for entry in entries {
        let pane = entry.pane
        for side in [pane?.x, pane?.y, pane?.width, pane?.height] {
          writer.append(UInt64(max(0, side ?? 0)))
        }
        writer.append(UInt64(entry.code.count))
        writer.append(bytes: entry.code)
      }
      box.append(bytes: writer.bytes)
    }
    return box.bytes
  }

  /// Reads the box of a movie; nil if it has none, or one that is malformed.
  package init?(from file: borrowing MovieBoxes) {
    for box in file.boxes() where box.type == BoxType.uuid && box.byteCount < Self.largestSize {
      let head = file.file.read(Self.headBytes, at: box.start)
      guard head.count == Self.headBytes, Array(head[8..<24]) == Self.identity,
        Box.number(head[24..<26]) == UInt64(Self.version), let bytes = file.bytes(of: box),
        let entries = Self.entries(bytes[Self.headBytes...])
      else { continue }
      self.init(digest: SampleDigest(rawValue: Box.number(head[26..<34])), entries: entries)
      return
    }
    return nil
  }

  private static func entries(_ bytes: ArraySlice<UInt8>) -> [Entry]? {
    var reader = NumberReader(bytes)
    guard let count = reader.nextCount(upTo: reader.remaining), count > 0 else { return nil }
    var entries: [Entry] = []
    for _ in 0..<count {
      var sides: [Int] = []
      for _ in 0..<4 {
        guard let side = reader.nextCount(upTo: Int(Int32.max)) else { return nil }
        sides.append(side)
      }
      guard let length = reader.nextCount(upTo: reader.remaining),
        let code = reader.nextBytes(length)
      else { return nil }
      let pane =
        sides[2] > 0 && sides[3] > 0
        ? Pane(x: sides[0], y: sides[1], width: sides[2], height: sides[3]) : nil
      entries.append(Entry(pane: pane, code: code))
    }
    return reader.isAtEnd ? entries : nil
  }
}
