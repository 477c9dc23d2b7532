// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem

/// The length of an AVI, Matroska or FLV file according to its own headers.
///
/// libavformat reads such a file up to its last byte, and does not report that the rest is missing.
struct ContainerLength {
  /// Whether the headers describe a longer file, so that its end is missing.
  let isCutOff: Bool
  /// The number of frames that the header states; nil if it states none.
  private(set) var statedFrameCount: Int?

  /// Reads the headers.
  ///
  /// Nil for other containers, and for a file that cannot be read.
  init?(_ path: String, container: String) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0,
      let file = try? RandomAccessFile(opening: path, forWriting: false)
    else { return nil }
    let size = Int64(status.st_size)
    switch container {
    case "avi": (isCutOff, statedFrameCount) = Self.avi(file, size)
    case "matroska": isCutOff = Self.matroska(file, size)
    case "flv": isCutOff = Self.flv(file, size)
    default: return nil
    }
  }

  private static func number(_ bytes: some Collection<UInt8>) -> Int64 {
    bytes.reduce(0) { $0 << 8 | Int64($1) }
  }

  /// Checks an AVI, which is a sequence of RIFF chunks that state their sizes.
  ///
  /// The header in the first chunk states the number of frames. An interrupted recorder leaves the
  /// size 0.
  private static func avi(_ file: borrowing RandomAccessFile, _ size: Int64) -> (Bool, Int?) {
    var position: Int64 = 0
    while position + 12 <= size {
      let head = file.read(8, at: position)
      guard head.count == 8, head.starts(with: Array("RIFF".utf8)) else { break }
      let length = number(head[4..<8].reversed())
      guard length > 0, position + 8 + length <= size else {
        let start = file.read(64, at: 0)
        let frames = start.count == 64 && start[24..<28].elementsEqual(Array("avih".utf8))
        return (true, frames ? Int(number(start[48..<52].reversed())) : nil)
      }
      position += 8 + length + length % 2
    }
    return (false, nil)
  }

  /// Checks a Matroska file, which consists of an EBML header and a segment that both state their
  /// sizes.
  ///
  /// The size of a segment that was streamed is unknown.
  private static func matroska(_ file: borrowing RandomAccessFile, _ size: Int64) -> Bool {
    func element(at position: Int64) -> (start: Int64, length: Int64?)? {
      let head = file.read(12, at: position)
      guard head.count == 12 else { return nil }
      let idLength = head[0].leadingZeroBitCount + 1
      guard idLength <= 4 else { return nil }
      let lengthLength = head[idLength].leadingZeroBitCount + 1
      guard lengthLength <= 8, idLength + lengthLength <= 12 else { return nil }
      let first = Int64(head[idLength]) & (Int64(0xFF) >> Int64(lengthLength))
      let rest = head[(idLength + 1)..<(idLength + lengthLength)]
      let length = rest.reduce(first) { $0 << 8 | Int64($1) }
      let unknown = Int64(1) << Int64(7 * lengthLength) - 1
      return (position + Int64(idLength + lengthLength), length == unknown ? nil : length)
    }
    guard let header = element(at: 0), let length = header.length, length < size,
      let segment = element(at: header.start + length), let wanted = segment.length
    else { return false }
    return wanted > size - segment.start
  }

  /// Checks an FLV file, in which each tag is preceded and followed by its size.
  private static func flv(_ file: borrowing RandomAccessFile, _ size: Int64) -> Bool {
    var position = number(file.read(4, at: 5)) + 4
    while position < size {
      let head = file.read(4, at: position)
      guard head.count == 4 else { return true }
      position += 11 + number(head[1..<4]) + 4
    }
    return position > size
  }
}
