// SPDX-License-Identifier: Apache-2.0

/// Box types as four-character codes (ISO/IEC 14496-12, 4.2).
package enum BoxType {
  package static let movie: UInt32 = 0x6D6F_6F76  // moov
  package static let extends: UInt32 = 0x6D76_6578  // mvex
  package static let trackExtends: UInt32 = 0x7472_6578  // trex
  package static let track: UInt32 = 0x7472_616B  // trak
  package static let trackHeader: UInt32 = 0x746B_6864  // tkhd
  package static let trackMedia: UInt32 = 0x6D64_6961  // mdia
  package static let mediaInformation: UInt32 = 0x6D69_6E66  // minf
  package static let dataInformation: UInt32 = 0x6469_6E66  // dinf
  package static let dataReferences: UInt32 = 0x6472_6566  // dref
  package static let alias: UInt32 = 0x616C_6973  // alis
  package static let location: UInt32 = 0x7572_6C20  // url
  package static let sampleTable: UInt32 = 0x7374_626C  // stbl
  package static let sampleDescriptions: UInt32 = 0x7374_7364  // stsd
  package static let sampleSizes: UInt32 = 0x7374_737A  // stsz
  package static let compactSampleSizes: UInt32 = 0x7374_7A32  // stz2
  package static let timeToSample: UInt32 = 0x7374_7473  // stts
  package static let fragment: UInt32 = 0x6D6F_6F66  // moof
  package static let fragmentHeader: UInt32 = 0x6D66_6864  // mfhd
  package static let trackFragment: UInt32 = 0x7472_6166  // traf
  package static let trackFragmentHeader: UInt32 = 0x7466_6864  // tfhd
  package static let trackFragmentTime: UInt32 = 0x7466_6474  // tfdt
  package static let trackRun: UInt32 = 0x7472_756E  // trun
  package static let media: UInt32 = 0x6D64_6174  // mdat
  package static let free: UInt32 = 0x6672_6565  // free
  package static let uuid: UInt32 = 0x7575_6964  // uuid
  package static let movieHeader: UInt32 = 0x6D76_6864  // mvhd
  package static let mediaHeader: UInt32 = 0x6D64_6864  // mdhd
  package static let handler: UInt32 = 0x6864_6C72  // hdlr
  package static let metadataHandler: UInt32 = 0x6D65_7461  // the handler type `meta`
  package static let edits: UInt32 = 0x6564_7473  // edts
  package static let editList: UInt32 = 0x656C_7374  // elst
  package static let sampleToChunk: UInt32 = 0x7374_7363  // stsc
  package static let chunkOffsets: UInt32 = 0x7374_636F  // stco
  package static let chunkOffsets64: UInt32 = 0x636F_3634  // co64
  package static let boxedMetadata: UInt32 = 0x6D65_6278  // mebx
  package static let metadataKeys: UInt32 = 0x6B65_7973  // keys
  package static let keyDeclaration: UInt32 = 0x6B65_7964  // keyd
  package static let fileType: UInt32 = 0x6674_7970  // ftyp
  package static let wide: UInt32 = 0x7769_6465  // wide
  package static let userData: UInt32 = 0x7564_7461  // udta
  package static let metadata: UInt32 = 0x6D65_7461  // meta
  package static let metadataItems: UInt32 = 0x696C_7374  // ilst
  package static let chapterList: UInt32 = 0x6368_706C  // chpl
  package static let geographicLocation: UInt32 = 0x6C6F_6369  // loci
  package static let references: UInt32 = 0x7472_6566  // tref
  package static let syncSamples: UInt32 = 0x7374_7373  // stss
  package static let partialSyncSamples: UInt32 = 0x7374_7073  // stps
  package static let sampleDependencies: UInt32 = 0x7364_7470  // sdtp
  package static let compositionOffsets: UInt32 = 0x6374_7473  // ctts
  package static let sampleGroupDescription: UInt32 = 0x7367_7064  // sgpd
  package static let sampleToGroup: UInt32 = 0x7362_6770  // sbgp
  package static let baseHeader: UInt32 = 0x676D_6864  // gmhd
  package static let emptyHeader: UInt32 = 0x6E6D_6864  // nmhd
  package static let timecode: UInt32 = 0x746D_6364  // tmcd
  package static let metadataKeyNamespace: UInt32 = 0x6D64_7461  // mdta
  package static let keyDataType: UInt32 = 0x6474_7970  // dtyp
}

/// Writes boxes; all numbers are big-endian.
package struct BoxBytes {
  package private(set) var bytes: [UInt8] = []

  /// Starts without bytes.
  ///
  /// `capacity` is the expected number of bytes.
  package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  package mutating func append(_ number: some FixedWidthInteger) {
    let size = MemoryLayout.size(ofValue: number)
    bytes.append(addingCapacity: size) { added in
      added.withUnsafeMutableBufferPointer { buffer, count in
        withUnsafeBytes(of: number.bigEndian) {
          UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0)
        }
        count = size
      }
    }
  }

  /// Appends a number with 64 bits if `isLong` is true, or else with 32 bits, which it must fit.
  mutating func append(_ number: Int64, isLong: Bool) {
    if isLong { append(number) } else { append(UInt32(truncatingIfNeeded: number)) }
  }

  package mutating func append(bytes more: [UInt8]) { bytes += more }

  /// Appends a box.
  ///
  /// The closure appends the contents of the box.
  package mutating func box(_ type: UInt32, _ contents: (inout BoxBytes) -> Void) {
    let start = bytes.count
    append(UInt32(0))
    append(type)
    contents(&self)
    let size = UInt32(clamping: bytes.count - start).bigEndian
    withUnsafeBytes(of: size) { bytes.replaceSubrange(start..<start + 4, with: $0) }
  }

  /// Appends a full box, which is a box with a version and flags.
  ///
  /// The closure appends the contents of the box.
  package mutating func fullBox(
    _ type: UInt32, version: UInt8, flags: UInt32, _ contents: (inout BoxBytes) -> Void
  ) {
    box(type) { box in
      box.append(UInt32(version) << 24 | flags)
      contents(&box)
    }
  }

  /// Appends a `free` box of `count` bytes.
  ///
  /// If a number is given, the box contains this number.
  ///
  /// `count` is at least 8, or at least 12 if a number is given.
  package mutating func free(_ count: Int, holding number: UInt32? = nil) {
    box(BoxType.free) { box in
      if let number { box.append(number) }
      let filled = number == nil ? 8 : 12
      box.bytes.append(contentsOf: repeatElement(0, count: max(0, count - filled)))
    }
  }
}

/// The position of a box in a file or a byte array.
package struct Box: Equatable, Sendable {
  package let type: UInt32
  package let start: Int64
  package let byteCount: Int64
  /// The size of the box header in bytes: 8, or 16 if the header contains a 64-bit size.
  package var headBytes: Int64 = 8
  package var end: Int64 { start + byteCount }

  package init(type: UInt32, start: Int64, byteCount: Int64, headBytes: Int64 = 8) {
    (self.type, self.start, self.byteCount) = (type, start, byteCount)
    self.headBytes = headBytes
  }

  /// Parses a box header from up to 16 bytes.
  ///
  /// Returns nil if the header is malformed, or if the box extends beyond `end`.
  package init?(head: some Collection<UInt8>, at start: Int64, end: Int64) {
    let head = Array(head.prefix(16))
    guard head.count >= 8 else { return nil }
    var size = Int64(Self.number(head[0..<4]))
    headBytes = 8
    if size == 1 {
      guard head.count == 16 else { return nil }
      size = Int64(clamping: Self.number(head[8..<16]))
      headBytes = 16
    } else if size == 0 {
      size = end - start
    }
    guard size >= headBytes, size <= end - start else { return nil }
    type = UInt32(Self.number(head[4..<8]))
    self.start = start
    byteCount = size
  }

  /// The consecutive boxes in a byte range, up to the first malformed header.
  package static func list(in bytes: [UInt8], from first: Int, to end: Int) -> [Box] {
    var boxes: [Box] = []
    var start = first
    while start >= 0, start < end, end <= bytes.count,
      let box = Box(head: bytes[start..<end], at: Int64(start), end: Int64(end))
    {
      boxes.append(box)
      start = Int(box.end)
    }
    return boxes
  }

  /// The child boxes of this box that have the type.
  package func all(_ type: UInt32, in bytes: [UInt8]) -> [Box] {
    Self.list(in: bytes, from: Int(start + headBytes), to: Int(end)).filter { $0.type == type }
  }

  /// The first child box of this box that has the type.
  package func first(_ type: UInt32, in bytes: [UInt8]) -> Box? { all(type, in: bytes).first }

  /// The sample tables of a `trak` box.
  package func sampleTable(in bytes: [UInt8]) -> Box? {
    first(BoxType.trackMedia, in: bytes)?
      .first(BoxType.mediaInformation, in: bytes)?.first(BoxType.sampleTable, in: bytes)
  }

  /// The number of ticks per second that an `mvhd` or `mdhd` box states.
  func timescale(in bytes: [UInt8]) -> UInt64? {
    number(0, in: bytes).flatMap { number($0 >> 24 == 1 ? 20 : 12, in: bytes) }
  }

  /// The track ID in the `tkhd` of a `trak` box.
  func trackIdentifier(in bytes: [UInt8]) -> UInt64? {
    guard let header = first(BoxType.trackHeader, in: bytes),
      let version = header.number(0, in: bytes)
    else { return nil }
    return header.number(version >> 24 == 1 ? 20 : 12, in: bytes)
  }

  /// The 32-bit number at an offset after the box's header.
  ///
  /// Nil if the offset is outside the box.
  package func number(_ offset: Int, in bytes: [UInt8]) -> UInt64? {
    let first = Int(start + headBytes) + offset
    guard offset >= 0, first + 4 <= min(Int(end), bytes.count) else { return nil }
    return Self.number(bytes[first..<first + 4])
  }

  /// The `trak` box with an index, counted from 0, in the bytes of a `moov` box.
  package static func track(_ number: Int, in bytes: [UInt8]) -> Box? {
    let tracks = list(in: bytes, from: 8, to: bytes.count).filter { $0.type == BoxType.track }
    return tracks.indices.contains(number) ? tracks[number] : nil
  }

  /// The big-endian number in the bytes.
  package static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
