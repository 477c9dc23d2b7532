// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMovieFormat

/// A MOV or MP4 file in memory, for changing boxes to match other programs' files.
///
/// A box is addressed by its path, such as `moov/trak/edts/elst`; the first match counts.
package struct PatchedMovie {
  package struct Missing: Error { package let path: String }

  package private(set) var bytes: [UInt8]

  package init(_ path: String) throws { bytes = try TestSupport.bytes(of: path) }

  /// Overwrites bytes in the contents of a box, at an offset.
  package mutating func set(_ number: some FixedWidthInteger, at offset: Int, of path: String)
    throws
  {
    let start = Int(try boxes(path)[0].start) + 8 + offset
    withUnsafeBytes(of: number.bigEndian) {
      bytes.replaceSubrange(start..<start + $0.count, with: $0)
    }
  }

  /// Replaces the contents of a box.
  ///
  /// The media data must precede the box.
  package mutating func replace(_ path: String, with contents: [UInt8]) throws {
    let found = try boxes(path)
    let range = Int(found[0].start) + 8..<Int(found[0].end)
    bytes.replaceSubrange(range, with: contents)
    for box in found {
      let size = UInt32(Int(box.byteCount) + contents.count - range.count).bigEndian
      withUnsafeBytes(of: size) {
        bytes.replaceSubrange(Int(box.start)..<Int(box.start) + 4, with: $0)
      }
    }
  }

  /// Appends a child box to a box.
  ///
  /// The media data must precede the box.
  package mutating func append(_ name: String, _ contents: [UInt8], to path: String) throws {
    let outer = try boxes(path)[0]
    var box = BoxBytes()
    box.append(UInt32(contents.count + 8))
    box.append(UInt32(Box.number(Array(name.utf8)[...])))
    let inside = bytes[Int(outer.start) + 8..<Int(outer.end)]
    try replace(path, with: Array(inside) + box.bytes + contents)
  }

  /// Reads a number from the contents of a box.
  package func number(_ byteCount: Int, at offset: Int, of path: String) throws -> UInt64 {
    let start = Int(try boxes(path)[0].start) + 8 + offset
    return Box.number(bytes[start..<start + byteCount])
  }

  /// Changes the decode time (`tfdt`, version 1) of each track in each fragment.
  package mutating func forEachTrackFragment(
    _ change: (_ track: UInt64, _ time: UInt64) -> UInt64
  ) throws {
    for fragment in Box.list(in: bytes, from: 0, to: bytes.count)
    where fragment.type == BoxType.fragment {
      for track in inner(fragment) where track.type == BoxType.trackFragment {
        let boxes = inner(track)
        guard let header = boxes.first(where: { $0.type == BoxType.trackFragmentHeader }),
          let time = boxes.first(where: { $0.type == BoxType.trackFragmentTime }),
          bytes[Int(time.start) + 8] == 1
        else { throw Missing(path: "moof/traf/tfdt") }
        let identifier = Int(header.start) + 12
        let position = Int(time.start) + 12
        let changed = change(
          Box.number(bytes[identifier..<identifier + 4]), Box.number(bytes[position..<position + 8])
        )
        withUnsafeBytes(of: changed.bigEndian) {
          bytes.replaceSubrange(position..<position + 8, with: $0)
        }
      }
    }
  }

  private func inner(_ box: Box) -> [Box] {
    Box.list(in: bytes, from: Int(box.start) + 8, to: Int(box.end))
  }

  /// The box at a path and its ancestors, innermost first.
  private func boxes(_ path: String) throws -> [Box] {
    var found: [Box] = []
    for name in path.split(separator: "/") {
      let type = UInt32(Box.number(Array(name.utf8)[...]))
      let range = found.first.map { Int($0.start) + 8..<Int($0.end) } ?? 0..<bytes.count
      guard
        let box = Box.list(in: bytes, from: range.lowerBound, to: range.upperBound)
          .first(where: { $0.type == type })
      else { throw Missing(path: path) }
      found.insert(box, at: 0)
    }
    return found
  }

  /// Encodes a table such as `stss` or `ctts`.
  ///
  /// Each entry has one or more numbers.
  package static func table(_ entries: [[UInt32]]) -> [UInt8] {
    var contents = BoxBytes()
    contents.append(UInt32(0))
    contents.append(UInt32(entries.count))
    for number in entries.joined() { contents.append(number) }
    return contents.bytes
  }

  /// Encodes an edit list of one or more entries at normal rate.
  package static func editList(_ entries: [(duration: UInt32, mediaTime: Int32)]) -> [UInt8] {
    var contents = BoxBytes()
    contents.append(UInt32(0))
    contents.append(UInt32(entries.count))
    for entry in entries {
      contents.append(entry.duration)
      contents.append(entry.mediaTime)
      contents.append(UInt32(0x1_0000))
    }
    return contents.bytes
  }
}
