// SPDX-License-Identifier: Apache-2.0

/// Changes the headers of HEVC NAL units.
///
/// See Rec. ITU-T H.265, 7.3. The units come from files, so any bytes are accepted.
package enum HEVCUnit {
  /// The type of a NAL unit, such as 33 for an SPS; nil if the unit is too short for a header.
  package static func type(_ unit: some Collection<UInt8>) -> UInt8? {
    unit.count > 2 ? unit.first.map { $0 >> 1 & 0x3F } : nil
  }

  /// Whether the unit belongs to a layer above the base layer.
  package static func isEnhancement(_ unit: some Collection<UInt8>) -> Bool {
    guard unit.count > 1, let first = unit.first else { return false }
    return first & 1 != 0 || unit[unit.index(after: unit.startIndex)] >> 3 != 0
  }

  /// Returns a slice of a random access frame for a place where decoding starts anew in the middle of a
  /// stream.
  ///
  /// A CRA or BLA frame becomes a BLA frame without leading frames (`BLA_N_LP`), so that a decoder
  /// expects no earlier frame and counts the order of frames from here. The frames before it are still shown
  /// (`no_output_of_prior_pics_flag` is 0).
  ///
  /// - Returns: The changed unit; nil if it needs no change.
  package static func startingAnew(_ unit: [UInt8]) -> [UInt8]? {
    guard let type = type(unit), (16...23).contains(type), !isEnhancement(unit) else { return nil }
    var changed = unit
    if [16, 17, 21].contains(type) { changed[0] = 18 << 1 }
    if unit[2] & 0x40 != 0 {
      var payload = removingEmulationPrevention(unit[2...])
      payload[0] &= ~0x40
      changed = changed[..<2] + addingEmulationPrevention(payload)
    }
    return changed == unit ? nil : changed
  }

  /// Returns a slice that refers to PPS 0 with a reference to another PPS.
  ///
  /// The Exp-Golomb code of 0 has one bit, and those of 15 to 30 have nine. The slice therefore becomes one
  /// byte longer, and all bits after the identifier keep their positions in their bytes.
  ///
  /// - Returns: The changed slice; the unit itself if it is no slice; nil if the slice refers to another PPS
  ///   than 0, or the identifier is out of range.
  package static func referring(_ unit: [UInt8], to frameSet: Int) -> [UInt8]? {
    guard let type = type(unit), type < 32 else { return unit }
    guard (15...30).contains(frameSet) else { return nil }
    var payload = removingEmulationPrevention(unit[2...])
    // `first_slice_segment_in_pic_flag`, and in a random access frame `no_output_of_prior_pics_flag`.
    let before = (16...23).contains(type) ? 2 : 1
    guard let first = payload.first, first & (0x80 >> before) != 0 else { return nil }
    let low = UInt16(first) & (0x7F >> before)
    let high = (UInt16(first) >> (8 - before)) << (16 - before)
    let bits = high | UInt16(frameSet + 1) << (7 - before) | low
    payload.replaceSubrange(0..<1, with: [UInt8(bits >> 8), UInt8(bits & 0xFF)])
    return unit[..<2] + addingEmulationPrevention(payload)
  }

  /// Returns the payload of a NAL unit (RBSP) from its stored bytes without the header.
  static func removingEmulationPrevention(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    var (payload, zeros): ([UInt8], Int) = ([], 0)
    for byte in bytes {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      payload.append(byte)
    }
    return payload
  }

  /// Returns the stored bytes of a payload.
  static func addingEmulationPrevention(_ payload: [UInt8]) -> [UInt8] {
    var (bytes, zeros): ([UInt8], Int) = ([], 0)
    bytes.reserveCapacity(payload.count + 8)
    for byte in payload {
      if zeros >= 2, byte <= 3 {
        bytes.append(3)
        zeros = 0
      }
      zeros = byte == 0 ? zeros + 1 : 0
      bytes.append(byte)
    }
    // A unit must not end with a zero.
    if zeros > 0 { bytes.append(3) }
    return bytes
  }
}
