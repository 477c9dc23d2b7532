// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem

/// What the boxes of a MOV or MP4 file say about its sample tables, beyond what libavformat tells.
package struct SampleTables {
  /// For each track, in the file's order, whether its samples are shown when they are decoded:
  /// there is no table of other times (`ctts`).
  package let tracksInOrder: [Bool]
  /// The bytes of the file.
  package let byteCount: Int64

  /// Boxes in which others lie, on the way to the tables.
  private static let containers: Set<String> = ["moov", "trak", "mdia", "minf", "stbl"]

  /// Looks for the tables of a movie.
  ///
  /// - Returns: Nil where they are not all there is to know: in fragments, with a compressed index,
  ///   in what is damaged or cannot be read.
  package init?(of path: String) {
    let file = open(path.systemPath, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    let size = lseek(file, 0, SEEK_END)
    guard size > 0 else { return nil }
    var tracks: [Bool] = []
    guard Self.walk(file, 0..<size, &tracks) else { return nil }
    tracksInOrder = tracks
    byteCount = Int64(size)
  }

  /// Whether all boxes of a range are whole and of the kinds that are understood.
  private static func walk(_ file: Int32, _ range: Range<Int>, _ tracks: inout [Bool]) -> Bool {
    var place = range.lowerBound
    while place + 8 <= range.upperBound {
      var head = [UInt8](repeating: 0, count: 16)
      let got = head.withUnsafeMutableBytes { pread(file, $0.baseAddress, 16, place) }
      guard got >= 8 else { return false }
      var size = head[0..<4].reduce(0) { $0 << 8 | Int($1) }
      var headLength = 8
      if size == 1, got == 16 {
        size = head[8..<16].reduce(0) { $0 << 8 | Int($1) }
        headLength = 16
      } else if size == 0 {
        size = range.upperBound - place
      }
      guard size >= headLength, size <= range.upperBound - place else { return false }
      let name = String(decoding: head[4..<8], as: UTF8.self)
      switch name {
      case "moof", "mvex", "cmov": return false
      case "trak": tracks.append(true)
      case "ctts": if !tracks.isEmpty { tracks[tracks.count - 1] = false }
      default: break
      }
      if containers.contains(name),
        !walk(file, place + headLength..<place + size, &tracks)
      {
        return false
      }
      place += size
    }
    return true
  }
}
