// SPDX-License-Identifier: Apache-2.0

package import OvercrankLinuxSystem

/// The boxes on the top level of a movie file, as far as a recorder changes them.
package struct MovieBoxes: ~Copyable {
  /// Bytes of the file when it was opened.
  package let byteCount: Int64
  package let file: RandomAccessFile
  /// The file, which others may have open, too.
  package var openFile: OpenFile { file.file }

  /// Opens a file to change it, or only to read it.
  ///
  /// - Throws: `SystemError` for "open".
  package init(opening path: String, forWriting: Bool = true) throws(SystemError) {
    file = try RandomAccessFile(opening: path, forWriting: forWriting)
    byteCount = file.count()
  }

  /// Works on a file that is open, as it is now.
  package init(_ file: OpenFile) {
    self.file = RandomAccessFile(file)
    byteCount = self.file.count()
  }

  /// The box that begins at a place, if one does.
  package func box(at start: Int64) -> Box? { box(at: start, before: byteCount) }

  /// The box that begins at a place and ends no later than another, if one does.
  package func box(at start: Int64, before end: Int64) -> Box? {
    guard start >= 0, start < end, end <= byteCount else { return nil }
    return Box(head: file.read(16, at: start), at: start, end: end)
  }

  /// The boxes in order, up to the end or to what is none.
  package func boxes() -> [Box] {
    var boxes: [Box] = []
    while let box = box(at: boxes.last?.end ?? 0) { boxes.append(box) }
    return boxes
  }

  /// No more than this is read into memory at a time; the index of an hour at 1000 fps takes a tenth.
  private static let largestInMemory: Int64 = 1 << 30

  /// All bytes of a box, its head included; nil where it is too large or cannot be read whole.
  package func bytes(of box: Box) -> [UInt8]? {
    guard box.byteCount < Self.largestInMemory else { return nil }
    let bytes = file.read(Int(clamping: box.byteCount), at: box.start)
    return Int64(bytes.count) == box.byteCount ? bytes : nil
  }

  /// Adds bytes behind the file as it was opened, and waits until they are on the disk with all that
  /// lies before them; where they find no room it stays as it was.
  ///
  /// - Throws: `SystemError` for "write to".
  package func append(_ bytes: [UInt8]) throws(SystemError) {
    do throws(SystemError) {
      try file.write(bytes, at: byteCount)
      try file.sync()
    } catch {
      file.truncate(to: byteCount)
      throw error
    }
  }

  /// Makes all from a box to the end of the file as it was opened the contents of one `mdat`.
  ///
  /// - Throws: `SystemError` for "write to".
  package func enclose(from box: Box) throws(SystemError) {
    var head = BoxBytes()
    head.append(UInt32(1))  // The size stands behind the type, in 64 bits.
    head.append(BoxType.media)
    head.append(byteCount - box.start)
    try file.write(head.bytes, at: box.start)
  }

  /// Makes a box one that readers skip.
  ///
  /// - Throws: `SystemError` for "write to".
  package func free(_ box: Box) throws(SystemError) {
    var type = BoxBytes()
    type.append(BoxType.free)
    try file.write(type.bytes, at: box.start + 4)
  }
}
