// SPDX-License-Identifier: Apache-2.0

package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// The top-level boxes of a movie file, with the changes to them that recovery and finishing need.
package struct MovieBoxes: ~Copyable {
  /// The size of the file in bytes when it was opened.
  package let byteCount: Int64
  package let file: RandomAccessFile
  /// The open file, which this value may share with other owners.
  package var openFile: OpenFile { file.file }

  /// Opens a file for reading, and for writing unless `forWriting` is false.
  ///
  /// - Throws: `CallFailure` with the operation "open".
  package init(opening path: String, forWriting: Bool = true) throws(CallFailure) {
    file = try RandomAccessFile(opening: path, forWriting: forWriting)
    byteCount = file.count()
  }

  /// Reads from an open file.
  ///
  /// Bytes that are appended to the file later are ignored.
  package init(_ file: OpenFile) {
    self.file = RandomAccessFile(file)
    byteCount = self.file.count()
  }

  /// The box at an offset.
  ///
  /// Nil if the bytes there are not a valid header.
  package func box(at start: Int64) -> Box? { box(at: start, before: byteCount) }

  /// The box at an offset that ends at or before `end`.
  ///
  /// Nil if the bytes there are not a valid header.
  package func box(at start: Int64, before end: Int64) -> Box? {
    guard start >= 0, start < end, end <= byteCount else { return nil }
    return Box(head: file.read(16, at: start), at: start, end: end)
  }

  /// The box at an offset, as ``box(at:before:)`` returns it.
  ///
  /// The header is read through a window that the caller keeps from box to box.
  func box(at start: Int64, before end: Int64, through window: inout BoxWindow) -> Box? {
    guard start >= 0, start < end, end <= byteCount else { return nil }
    return Box(head: window.head(at: start, of: file), at: start, end: end)
  }

  /// The boxes in file order, up to the end of the file or the first malformed header.
  package func boxes() -> [Box] {
    var boxes: [Box] = []
    var window = BoxWindow()
    while let box = box(at: boxes.last?.end ?? 0, before: byteCount, through: &window) {
      boxes.append(box)
    }
    return boxes
  }

  /// The size in bytes up to which a box is read into memory.
  ///
  /// The index of one hour at 1000 fps has a tenth of this size.
  static let largestInMemory: Int64 = 1 << 30

  /// All bytes of a box, including its header.
  ///
  /// Nil if the box is too large or cannot be read completely.
  package func bytes(of box: Box) -> [UInt8]? {
    guard box.byteCount < Self.largestInMemory else { return nil }
    let bytes = file.read(Int(clamping: box.byteCount), at: box.start)
    return Int64(bytes.count) == box.byteCount ? bytes : nil
  }

  /// The `moov` box among the boxes of the file and its bytes, in which the box begins at 0.
  ///
  /// Nil if there is none, or if it cannot be read.
  package func movie(in boxes: [Box]) -> (box: Box, bytes: [UInt8])? {
    guard let found = boxes.first(where: { $0.type == BoxType.movie }),
      let bytes = bytes(of: found)
    else { return nil }
    let box = Box(
      type: found.type, start: 0, byteCount: found.byteCount, headBytes: found.headBytes)
    return (box, bytes)
  }

  /// The container that the `ftyp` box among the boxes of the file names.
  func container(in boxes: [Box]) -> MovieContainer {
    let type = boxes.first { $0.type == BoxType.fileType }
    return MovieContainer(
      brand: type.map { String(decoding: file.read(4, at: $0.start + $0.headBytes), as: UTF8.self) }
    )
  }

  /// Appends bytes at the end of the file, and syncs the file.
  ///
  /// After an error, the file is truncated to its old size.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package func append(_ bytes: [UInt8]) throws(CallFailure) {
    do throws(CallFailure) {
      try file.write(bytes, at: byteCount)
      try file.sync()
    } catch {
      file.truncate(to: byteCount)
      throw error
    }
  }

  /// Makes all bytes from a box to the end of the file the contents of one `mdat` box.
  ///
  /// The first 16 bytes of the box are overwritten with the header of the `mdat` box.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package func enclose(from box: Box) throws(CallFailure) {
    var head = BoxBytes()
    head.append(UInt32(1))  // A size of 1 means that a 64-bit size follows the type.
    head.append(BoxType.media)
    head.append(byteCount - box.start)
    try file.write(head.bytes, at: box.start)
  }

  /// Changes the type of a box to `free`, so that readers skip the box.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package func free(_ box: Box) throws(CallFailure) {
    var type = BoxBytes()
    type.append(BoxType.free)
    try file.write(type.bytes, at: box.start + 4)
  }
}

/// A part of a file that stays in memory while the headers of consecutive boxes are read.
///
/// A file may consist of millions of small boxes. While boxes are small, the part that is read at
/// once doubles each time. After a large box, only one header is read again.
struct BoxWindow {
  private var start: Int64 = 0
  private var bytes: [UInt8] = []
  private var readSize = headBytes

  private static let (headBytes, smallGap, largestRead) = (16, 1_024, 1 << 16)

  /// The bytes of the box header at a position.
  ///
  /// They are fewer than 16 at the end of the file.
  mutating func head(at position: Int64, of file: borrowing RandomAccessFile) -> ArraySlice<UInt8> {
    let offset = position - start
    if offset < 0 || offset + Int64(Self.headBytes) > Int64(bytes.count) {
      let isNear = (0...Int64(bytes.count + Self.smallGap)).contains(offset)
      readSize = isNear ? min(Self.largestRead, readSize * 2) : Self.headBytes
      (start, bytes) = (position, file.read(readSize, at: position))
    }
    return bytes.dropFirst(Int(position - start)).prefix(Self.headBytes)
  }
}
