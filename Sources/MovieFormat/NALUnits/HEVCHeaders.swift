// SPDX-License-Identifier: Apache-2.0

/// The parameter sets (VPS, SPS, PPS) of an HEVC track.
///
/// See `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 8.3.3.1) and Rec. ITU-T H.265, 7.3.2.
package struct HEVCHeaders: Sendable {
  /// The identifiers of a VPS, an SPS and a PPS that refer to each other.
  package struct Identifiers: Equatable, Sendable {
    package let (video, sequence, frame): (Int, Int, Int)

    package init(video: Int, sequence: Int, frame: Int) {
      (self.video, self.sequence, self.frame) = (video, sequence, frame)
    }
  }

  /// The fields of an SPS that frames of two encodings in one track must share.
  package struct Format: Equatable, Sendable {
    /// `general_profile_idc`.
    package let profile: Int
    package let (width, height): (Int, Int)
    package let (chroma, lumaDepth, chromaDepth): (Int, Int, Int)
    /// The binary logarithms of the least coding block, the coding tree block and the greatest transform
    /// block.
    package let (codingBlock, treeBlock, transformBlock): (Int, Int, Int)
  }

  private struct List {
    /// The type of the NAL units, and a flag for a complete list in the highest bit.
    let type: UInt8
    var units: [[UInt8]]
  }

  /// The size of each NAL unit's length prefix in bytes; nil for a byte stream.
  package let unitLengthSize: Int?
  /// The fixed part of the record; empty for a byte stream.
  private var record: [UInt8] = []
  private var lists: [List] = []

  private static let (video, sequence, frame): (UInt8, UInt8, UInt8) = (32, 33, 34)
  /// Level 8.5, which has no limits.
  private static let noLevel: UInt8 = 255

  /// Parses the extradata of an HEVC track.
  ///
  /// Returns nil if it does not contain all kinds of parameter sets.
  ///
  /// - Parameters:
  ///   - bytes: The extradata.
  ///   - unitLengthSize: The size of each NAL unit's length prefix in bytes; nil for a byte stream.
  package init?(_ bytes: [UInt8], unitLengthSize: Int?) {
    self.unitLengthSize = unitLengthSize
    if unitLengthSize == nil {
      for type in [Self.video, Self.sequence, Self.frame] {
        lists.append(List(type: type, units: []))
      }
      bytes.withUnsafeBytes { buffer in
        var units = NALUnitReader(buffer, lengthSize: nil)
        while let range = units.next() {
          let unit = Array(buffer[range])
          if let list = lists.firstIndex(where: { $0.type == HEVCUnit.type(unit) }) {
            lists[list].units.append(unit)
          }
        }
      }
    } else {
      guard bytes.count > 22 else { return nil }
      record = Array(bytes[..<22])
      var position = 23
      for _ in 0..<bytes[22] {
        guard position + 3 <= bytes.count else { return nil }
        var list = List(type: bytes[position], units: [])
        let count = Int(bytes[position + 1]) << 8 | Int(bytes[position + 2])
        position += 3
        for _ in 0..<count {
          guard position + 2 <= bytes.count else { return nil }
          let length = Int(bytes[position]) << 8 | Int(bytes[position + 1])
          guard length > 2, position + 2 + length <= bytes.count else { return nil }
          list.units.append(Array(bytes[position + 2..<position + 2 + length]))
          position += 2 + length
        }
        lists.append(list)
      }
    }
    guard
      ![Self.video, Self.sequence, Self.frame].contains(where: { units($0).isEmpty }),
      !lists.contains(where: { $0.units.contains(where: HEVCUnit.isEnhancement) })
    else { return nil }
  }

  private func units(_ type: UInt8) -> [[UInt8]] {
    lists.filter { $0.type & 0x3F == type }.flatMap(\.units)
  }

  /// The format in all SPS; nil if they differ, or one cannot be read.
  package var format: Format? {
    let formats = units(Self.sequence).map { Sequence($0)?.format }
    guard let first = formats.first, formats.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  /// Whether frames may be lossless: a PPS allows blocks that are stored without transform and
  /// quantization.
  package var isLossless: Bool {
    units(Self.frame).contains { unit in
      var reader = ExpGolombReader(HEVCUnit.removingEmulationPrevention(unit), at: 2)
      // Rec. ITU-T H.265, 7.3.2.3.1, up to `transquant_bypass_enabled_flag`.
      guard reader.number() != nil, reader.number() != nil, reader.skip(7),
        reader.number() != nil, reader.number() != nil, reader.number() != nil, reader.skip(2),
        let hasDifference = reader.bits(1), hasDifference == 0 || reader.number() != nil,
        reader.number() != nil, reader.number() != nil, reader.skip(3)
      else { return false }
      return reader.bits(1) == 1
    }
  }

  /// Whether the video has several layers, such as the two views of spatial video.
  package var hasLayers: Bool {
    units(Self.video).contains { unit in
      var reader = ExpGolombReader(HEVCUnit.removingEmulationPrevention(unit), at: 2)
      // The identifier and two flags of the base layer precede `vps_max_layers_minus1`.
      guard reader.bits(6) != nil, let layers = reader.bits(6) else { return true }
      return layers > 0
    }
  }

  /// Identifiers that no parameter set of the track has; nil if all are used.
  ///
  /// Packets may contain further parameter sets, whose identifiers are usually low. The highest ones are
  /// therefore chosen. That of the PPS is 15 to 30, so that ``HEVCUnit/referring(_:to:)`` accepts it.
  package var freeIdentifiers: Identifiers? {
    func payloads(_ type: UInt8) -> [[UInt8]] {
      units(type).map { HEVCUnit.removingEmulationPrevention($0) }
    }
    let videos = payloads(Self.video).compactMap { $0.count > 2 ? Int($0[2] >> 4) : nil }
    let sequences = units(Self.sequence).compactMap { Sequence($0)?.identifier }
    let frames = payloads(Self.frame).compactMap { payload in
      var reader = ExpGolombReader(payload, at: 2)
      return reader.number()
    }
    guard let video = (0...15).last(where: { !videos.contains($0) }),
      let sequence = (0...15).last(where: { !sequences.contains($0) }),
      let frame = (15...30).last(where: { !frames.contains($0) })
    else { return nil }
    return Identifiers(video: video, sequence: sequence, frame: frame)
  }

  /// The headers with other identifiers; nil if there is not exactly one parameter set of each kind.
  ///
  /// Frames that are lossless have no level, although they replace frames that have one. They get that of
  /// the `source`.
  package func identified(by identifiers: Identifiers, in source: HEVCHeaders) -> HEVCHeaders? {
    var other = self
    for index in other.lists.indices {
      let type = other.lists[index].type & 0x3F
      guard [Self.video, Self.sequence, Self.frame].contains(type) else { continue }
      guard other.lists[index].units.count == 1 else { return nil }
      var payload = HEVCUnit.removingEmulationPrevention(other.lists[index].units[0])
      let level = [Self.video: 17, Self.sequence: 14][type] ?? 0
      if level > 0, payload.count > level, payload[level] == Self.noLevel,
        let known = source.sequenceProfile?.last
      {
        payload[level] = known
      }
      var reader = ExpGolombReader(payload, at: 0)
      var writer = BitWriter()
      func copy(_ count: Int) -> Bool {
        for _ in 0..<count {
          guard let bit = reader.bits(1) else { return false }
          writer.append(bit, bits: 1)
        }
        return true
      }
      guard copy(16) else { return nil }
      switch type {
      case Self.video:
        guard reader.bits(4) != nil else { return nil }
        writer.append(identifiers.video, bits: 4)
      case Self.sequence:
        guard let sequence = Sequence(other.lists[index].units[0]), reader.bits(4) != nil else {
          return nil
        }
        writer.append(identifiers.video, bits: 4)
        guard copy(sequence.identifierOffset - 20), reader.number() != nil else { return nil }
        writer.append(code: identifiers.sequence)
      default:
        guard reader.number() != nil, reader.number() != nil else { return nil }
        writer.append(code: identifiers.frame)
        writer.append(code: identifiers.sequence)
      }
      // The last bit that is set marks the end.
      guard let end = payload.lastIndex(where: { $0 != 0 }) else { return nil }
      let last = end * 8 + 7 - payload[end].trailingZeroBitCount
      while reader.offset <= last {
        guard copy(1) else { return nil }
      }
      let bytes = writer.bytes
      other.lists[index].units = [
        Array(bytes[..<2]) + HEVCUnit.addingEmulationPrevention(Array(bytes[2...]))
      ]
    }
    return other
  }

  /// The parameter sets for a track whose frames are from two encodings: this one and another one.
  package func adding(_ other: HEVCHeaders) -> HEVCHeaders {
    var both = self
    for list in both.lists.indices {
      both.lists[list].units += other.units(both.lists[list].type & 0x3F)
    }
    guard both.record.count == 22, let added = other.sequenceProfile else { return both }
    // A decoder must be able to decode the frames of both encodings. The record therefore claims only the
    // compatibility and the constraints that both have, the higher tier, and the higher level.
    both.record[1] |= added[0] & 0x20
    for byte in 1...10 { both.record[1 + byte] &= added[byte] }
    both.record[12] = max(record[12], added[11])
    // The least spatial segment and the parallelism are unknown, and temporal layers are not nested.
    (both.record[13], both.record[14], both.record[15]) = (0xF0, 0, 0xFC)
    both.record[21] &= ~0x04
    return both
  }

  /// The 12 bytes of the first SPS from the profile to the level.
  private var sequenceProfile: [UInt8]? {
    guard let unit = units(Self.sequence).first else { return nil }
    let payload = HEVCUnit.removingEmulationPrevention(unit)
    return payload.count > 15 ? Array(payload[3..<15]) : nil
  }

  /// The codec headers (`extradata`) with these parameter sets.
  package var bytes: [UInt8] {
    guard unitLengthSize != nil else {
      return lists.flatMap { $0.units.flatMap { [0, 0, 0, 1] + $0 } }
    }
    func number(_ value: Int) -> [UInt8] {
      [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
    }
    return record + [UInt8(truncatingIfNeeded: lists.count)]
      + lists.flatMap { list in
        [list.type] + number(list.units.count)
          + list.units.flatMap { number($0.count) + $0 }
      }
  }
}

/// The first fields of an SPS.
///
/// See Rec. ITU-T H.265, 7.3.2.2.
private struct Sequence {
  /// `sps_seq_parameter_set_id`.
  let identifier: Int
  /// The position of the identifier in the unit without emulation prevention, in bits.
  let identifierOffset: Int
  let format: HEVCHeaders.Format

  init?(_ unit: [UInt8]) {
    let payload = HEVCUnit.removingEmulationPrevention(unit)
    var reader = ExpGolombReader(payload, at: 2)
    guard reader.bits(4) != nil, let layers = reader.bits(3), layers < 7, reader.bits(1) != nil,
      reader.bits(3) != nil, let profile = reader.bits(5), reader.skip(32 + 48 + 8)
    else { return nil }
    if layers > 0 {
      var flags: [Int] = []
      for layer in 0..<8 {
        guard let flag = reader.bits(2) else { return nil }
        if layer < layers { flags.append(flag) }
      }
      for flag in flags {
        guard reader.skip((flag & 2 != 0 ? 88 : 0) + (flag & 1 != 0 ? 8 : 0)) else { return nil }
      }
    }
    identifierOffset = reader.offset
    guard let identifier = reader.number(), identifier < 16, let chroma = reader.number(),
      chroma <= 3, chroma < 3 || reader.bits(1) != nil, let width = reader.number(),
      let height = reader.number(), let cropped = reader.bits(1)
    else { return nil }
    if cropped == 1 {
      for _ in 0..<4 { guard reader.number() != nil else { return nil } }
    }
    guard let luma = reader.number(), let chromaDepth = reader.number(), luma <= 8,
      chromaDepth <= 8, let order = reader.number(), order <= 12, let ordering = reader.bits(1)
    else { return nil }
    for _ in 0..<3 * (ordering == 1 ? layers + 1 : 1) {
      guard reader.number() != nil else { return nil }
    }
    guard let block = reader.number(), let blocks = reader.number(), let least = reader.number(),
      let transforms = reader.number(), max(block, blocks, least, transforms) <= 6
    else { return nil }
    self.identifier = identifier
    format = HEVCHeaders.Format(
      profile: profile, width: width, height: height, chroma: chroma, lumaDepth: luma + 8,
      chromaDepth: chromaDepth + 8, codingBlock: block + 3, treeBlock: block + 3 + blocks,
      transformBlock: least + 2 + transforms)
  }
}

/// Writes bits and Exp-Golomb codes.
///
/// See Rec. ITU-T H.265, 9.2.
private struct BitWriter {
  /// The bytes, of which the last one is filled with zeros.
  private(set) var bytes: [UInt8] = []
  private var count = 0

  mutating func append(_ value: Int, bits: Int) {
    for bit in (0..<bits).reversed() {
      if count % 8 == 0 { bytes.append(0) }
      bytes[count / 8] |= UInt8(value >> bit & 1) << (7 - count % 8)
      count += 1
    }
  }

  mutating func append(code value: Int) {
    let length = Int.bitWidth - (value + 1).leadingZeroBitCount
    append(0, bits: length - 1)
    append(value + 1, bits: length)
  }
}
