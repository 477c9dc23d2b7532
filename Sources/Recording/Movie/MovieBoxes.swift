// SPDX-License-Identifier: Apache-2.0
import LibAV

/// Types of boxes, four letters each (ISO/IEC 14496-12, 4.2).
enum BoxType {
  static let movie: UInt32 = 0x6D6F_6F76  // moov
  static let fragment: UInt32 = 0x6D6F_6F66  // moof
  static let fragmentHeader: UInt32 = 0x6D66_6864  // mfhd
  static let trackFragment: UInt32 = 0x7472_6166  // traf
  static let trackFragmentHeader: UInt32 = 0x7466_6864  // tfhd
  static let trackFragmentTime: UInt32 = 0x7466_6474  // tfdt
  static let trackRun: UInt32 = 0x7472_756E  // trun
  static let media: UInt32 = 0x6D64_6174  // mdat
  static let free: UInt32 = 0x6672_6565  // free
}

/// Bytes of boxes as they are put together; all numbers are big-endian.
struct BoxBytes {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ number: some FixedWidthInteger) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Adds a box of what the closure adds.
  mutating func box(_ type: UInt32, _ contents: (inout BoxBytes) -> Void) {
    let start = bytes.count
    append(UInt32(0))
    append(type)
    contents(&self)
    let size = UInt32(clamping: bytes.count - start).bigEndian
    withUnsafeBytes(of: size) { bytes.replaceSubrange(start..<start + 4, with: $0) }
  }

  /// Adds a box that has a version and flags.
  mutating func fullBox(
    _ type: UInt32, version: UInt8, flags: UInt32, _ contents: (inout BoxBytes) -> Void
  ) {
    box(type) { box in
      box.append(UInt32(version) << 24 | flags)
      contents(&box)
    }
  }

  /// Adds a box of so many bytes, at least 8, that readers skip.
  mutating func free(_ count: Int) {
    box(BoxType.free) { box in
      box.bytes.append(contentsOf: repeatElement(0, count: max(0, count - 8)))
    }
  }
}

/// The boxes on the top level of a movie file, as far as a recorder changes them.
struct MovieBoxes: ~Copyable {
  struct Box {
    let type: UInt32
    let start: Int64
    let byteCount: Int64
  }

  /// Bytes of the file when it was opened.
  let byteCount: Int64
  private let file: MovieBytes

  /// Opens a file to change it.
  ///
  /// - Throws: `LibAVError` for "open".
  init(opening path: String) throws(LibAVError) {
    file = try MovieBytes(opening: path)
    byteCount = file.count()
  }

  /// The boxes in order, up to the end or to what is none.
  func boxes() -> [Box] {
    var boxes: [Box] = []
    var start: Int64 = 0
    while start + 8 <= byteCount {
      let head = file.read(16, at: start)
      guard head.count >= 8 else { break }
      var size = Int64(Self.number(head[0..<4]))
      if size == 1, head.count == 16 {
        size = Int64(clamping: Self.number(head[8..<16]))
      } else if size == 0 {
        size = byteCount - start
      }
      guard size >= 8, size <= byteCount - start else { break }
      boxes.append(Box(type: UInt32(Self.number(head[4..<8])), start: start, byteCount: size))
      start += size
    }
    return boxes
  }

  /// Adds bytes behind the file as it was opened; where they find no room it stays as it was.
  ///
  /// - Throws: `LibAVError` for "write to".
  func append(_ bytes: [UInt8]) throws(LibAVError) {
    do throws(LibAVError) { try file.write(bytes, at: byteCount) } catch {
      file.truncate(to: byteCount)
      throw error
    }
  }

  /// Makes all from a box to the end of the file as it was opened the contents of one `mdat`.
  ///
  /// - Throws: `LibAVError` for "write to".
  func enclose(from box: Box) throws(LibAVError) {
    var head = BoxBytes()
    head.append(UInt32(1))  // The size stands behind the type, in 64 bits.
    head.append(BoxType.media)
    head.append(byteCount - box.start)
    try file.write(head.bytes, at: box.start)
  }

  /// Makes a box one that readers skip.
  ///
  /// - Throws: `LibAVError` for "write to".
  func free(_ box: Box) throws(LibAVError) {
    var type = BoxBytes()
    type.append(BoxType.free)
    try file.write(type.bytes, at: box.start + 4)
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
