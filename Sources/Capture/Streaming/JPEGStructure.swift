// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The structure of a JPEG image, checked without decoding its pixels.
///
/// If a camera's transfer loses packets, the image often has both its markers, SOI and EOI. The loss
/// then shows in what is between them: a header that ends too early, restart markers out of order, a
/// marker that cannot occur in a scan, or a scan that has fewer bits than its blocks need.
struct JPEGStructure {
  /// A component of the frame header (SOF), with its number of blocks in a unit of the scan.
  private struct Component {
    var id: UInt8 = 0
    var width = 0
    var height = 0
  }

  private enum Marker {
    /// The markers of frame headers are in this range, together with three others.
    static let frames: ClosedRange<UInt8> = 0xC0...0xCF
    static let huffmanTables: UInt8 = 0xC4
    static let extensions: UInt8 = 0xC8
    static let arithmetic: UInt8 = 0xCC
    static let sequential: ClosedRange<UInt8> = 0xC0...0xC1
    static let restarts: ClosedRange<UInt8> = 0xD0...0xD7
    static let start: UInt8 = 0xD8
    static let end: UInt8 = 0xD9
    static let scan: UInt8 = 0xDA
    static let restartInterval: UInt8 = 0xDD
    /// The least code of a marker that cameras use.
    ///
    /// Smaller codes are reserved.
    static let least: UInt8 = 0xC0
  }

  /// The greatest number of zero bytes that cameras append to a JPEG image.
  private static let paddingLimit = 4_096
  /// The number of bits of the shortest code in the usual Huffman tables, which an image may omit.
  private static let usualBits = 2

  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  // The check runs for each frame on the capture thread, so it does not allocate memory.
  private var components = InlineArray<4, Component>(repeating: Component())
  private var componentCount = 0
  private var (width, height) = (0, 0)
  /// Whether the scans contain whole blocks, as in all images but progressive and lossless ones.
  private var isSequential = false
  private var restartInterval = 0
  /// The least number of bits of a block's part, for each of four tables.
  private var dcBits = InlineArray<4, Int>(repeating: usualBits)
  private var acBits = InlineArray<4, Int>(repeating: usualBits)

  /// The image without the zero bytes at its end, or nil if it lacks its SOI or its EOI marker.
  static func image(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var end = bytes.count
    let limit = max(0, end - paddingLimit)
    while end > limit, bytes[end - 1] == 0 { end -= 1 }
    guard end >= 4, bytes[0] == 0xFF, bytes[1] == Marker.start, bytes[end - 2] == 0xFF,
      bytes[end - 1] == Marker.end
    else { return nil }
    return UnsafeRawBufferPointer(rebasing: bytes[..<end])
  }

  /// Whether an image of ``image(in:)`` has a plausible structure.
  ///
  /// Cameras with interlaced sensors send one image for each field, one after the other.
  static func isIntact(_ image: UnsafeRawBufferPointer) -> Bool {
    var start = 0
    while start < image.count {
      var structure = JPEGStructure(UnsafeRawBufferPointer(rebasing: image[start...]))
      guard let end = structure.endOfImage() else { return false }
      start += end
      while start < image.count, image[start] == 0 || image[start] == 0xFF,
        !hasStart(image, start)
      { start += 1 }
      guard start == image.count || hasStart(image, start) else { return false }
    }
    return true
  }

  private static func hasStart(_ image: UnsafeRawBufferPointer, _ index: Int) -> Bool {
    index + 1 < image.count && image[index] == 0xFF && image[index + 1] == Marker.start
  }

  private init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The position after the EOI marker, or nil if the image is damaged before it.
  private mutating func endOfImage() -> Int? {
    position = 2
    var hasScan = false
    while let marker = nextMarker() {
      switch marker {
      case Marker.end: return hasScan ? position : nil
      case Marker.scan:
        guard let segment = nextSegment(), readScan(segment) else { return nil }
        hasScan = true
      case Marker.restarts, Marker.start: return nil
      default:
        guard let segment = nextSegment(), read(segment, of: marker) else { return nil }
      }
    }
    return nil
  }

  /// The code of the marker at the position, or nil if another byte is there.
  private mutating func nextMarker() -> UInt8? {
    guard position < bytes.count, bytes[position] == 0xFF else { return nil }
    while position < bytes.count, bytes[position] == 0xFF { position += 1 }
    guard position < bytes.count, bytes[position] >= Marker.least else { return nil }
    position += 1
    return bytes[position - 1]
  }

  /// The content of the segment at the position, or nil if it exceeds the image.
  private mutating func nextSegment() -> UnsafeRawBufferPointer? {
    guard position + 2 <= bytes.count else { return nil }
    let end = position + number(bytes, position)
    guard end >= position + 2, end <= bytes.count else { return nil }
    defer { position = end }
    return UnsafeRawBufferPointer(rebasing: bytes[(position + 2)..<end])
  }

  /// The two-byte number at an index.
  private func number(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Int {
    Int(bytes[index]) << 8 | Int(bytes[index + 1])
  }

  private mutating func read(_ segment: UnsafeRawBufferPointer, of marker: UInt8) -> Bool {
    switch marker {
    case Marker.huffmanTables: return readTables(segment)
    case Marker.extensions, Marker.arithmetic: return true
    case Marker.frames:
      return readFrame(segment, isSequential: Marker.sequential.contains(marker))
    case Marker.restartInterval:
      guard segment.count >= 2 else { return false }
      restartInterval = number(segment, 0)
      return true
    default: return true
    }
  }

  private mutating func readFrame(
    _ segment: UnsafeRawBufferPointer, isSequential: Bool
  ) -> Bool {
    guard segment.count >= 6, segment.count >= 6 + 3 * Int(segment[5]) else { return false }
    (height, width) = (number(segment, 1), number(segment, 3))
    componentCount = Int(segment[5])
    // Images of more components have no use for a camera, and are not checked further.
    self.isSequential = isSequential && componentCount <= 4
    for index in 0..<min(4, componentCount) {
      let sampling = segment[7 + 3 * index]
      components[index] = Component(
        id: segment[6 + 3 * index], width: Int(sampling >> 4), height: Int(sampling & 15))
      guard (1...4).contains(components[index].width), (1...4).contains(components[index].height)
      else { return false }
    }
    return true
  }

  /// Reads the lengths of the shortest codes from Huffman tables.
  private mutating func readTables(_ segment: UnsafeRawBufferPointer) -> Bool {
    var start = 0
    while start + 17 <= segment.count {
      let (kind, table) = (segment[start] >> 4, Int(segment[start] & 15))
      let counts = segment.loadUnaligned(fromByteOffset: start + 1, as: SIMD16<UInt8>.self)
      let total = Int(SIMD16<UInt16>(truncatingIfNeeded: counts).wrappedSum())
      guard kind <= 1, table < 4, start + 17 + total <= segment.count else { return false }
      var shortest = 1
      while total > 0, segment[start + shortest] == 0 { shortest += 1 }
      if kind == 0 {
        dcBits[table] = shortest
      } else {
        acBits[table] = leastBits(of: segment, table: start, shortest: shortest, count: total)
      }
      start += 17 + total
    }
    return start == segment.count
  }

  /// The least number of bits of the coefficients of a block: the end-of-block code, or the codes
  /// that reach the last coefficient.
  private func leastBits(
    of segment: UnsafeRawBufferPointer, table start: Int, shortest: Int, count: Int
  ) -> Int {
    // A code covers at most 16 of the 63 coefficients.
    let least = 4 * shortest
    // The value 0 is the end of a block. The values are in the order of the lengths of their codes.
    guard let values = segment.baseAddress.map({ $0 + start + 17 }),
      let end = memchr(values, 0, count)
    else { return least }
    let index = values.distance(to: UnsafeRawPointer(end))
    var (length, codes) = (0, 0)
    while codes <= index, length < 16 {
      length += 1
      codes += Int(segment[start + length])
    }
    return min(least, length)
  }

  /// Reads a scan up to the marker after it, and checks its length and its restart markers.
  private mutating func readScan(_ header: UnsafeRawBufferPointer) -> Bool {
    guard let first = header.first, header.count >= 4 + 2 * Int(first),
      let base = bytes.baseAddress
    else { return false }
    // The loop runs for each byte 0xFF of a frame, so its state is in local variables.
    let (start, end) = (base + position, base + bytes.count)
    var (next, restarts, stuffed) = (start, 0, 0)
    while true {
      guard let found = memchr(next, 0xFF, next.distance(to: end)) else { return false }
      let marker = UnsafeRawPointer(found)
      guard marker.distance(to: end) > 1 else { return false }
      let code = marker.load(fromByteOffset: 1, as: UInt8.self)
      if code == 0 {
        stuffed += 1
        next = marker + 2
      } else if code == 0xFF {
        stuffed += 1
        next = marker + 1
      } else if Marker.restarts.contains(code) {
        guard Int(code - Marker.restarts.lowerBound) == restarts & 7 else { return false }
        restarts += 1
        next = marker + 2
      } else {
        next = marker
        break
      }
    }
    position = base.distance(to: next)
    let count = start.distance(to: next) - stuffed - 2 * restarts
    return holds(header, byteCount: count, restarts: restarts)
  }

  /// Whether a scan has the restart markers and at least the bits that its blocks need.
  private func holds(
    _ header: UnsafeRawBufferPointer, byteCount: Int, restarts: Int
  ) -> Bool {
    // The height of the image may be 0 if it is stated after the scan.
    guard isSequential, height > 0 else { return true }
    var (widest, highest) = (1, 1)
    for index in 0..<componentCount {
      widest = max(widest, components[index].width)
      highest = max(highest, components[index].height)
    }
    var (columns, rows) = (width.dividedUp(by: 8 * widest), height.dividedUp(by: 8 * highest))
    var bits = 0
    for index in 0..<Int(header[0]) {
      let tables = header[2 + 2 * index]
      guard let component = component(header[1 + 2 * index]), tables >> 4 < 4, tables & 15 < 4
      else { return false }
      let blockBits = dcBits[Int(tables >> 4)] + acBits[Int(tables & 15)]
      if header[0] == 1 {
        // A scan of one component contains only the blocks that the image needs.
        columns = (width * component.width).dividedUp(by: 8 * widest)
        rows = (height * component.height).dividedUp(by: 8 * highest)
        bits = blockBits
      } else {
        bits += component.width * component.height * blockBits
      }
    }
    let units = columns * rows
    let due = restartInterval > 0 ? max(0, units - 1) / restartInterval : 0
    return restarts == due && byteCount * 8 >= units * bits
  }

  private func component(_ id: UInt8) -> Component? {
    for index in 0..<componentCount where components[index].id == id { return components[index] }
    return nil
  }
}

extension Int {
  /// The quotient, rounded up.
  fileprivate func dividedUp(by divisor: Int) -> Int { (self + divisor - 1) / divisor }
}
