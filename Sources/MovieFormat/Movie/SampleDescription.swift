// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// Reads and changes a sample entry: one description in the `stsd` box of a track (ISO/IEC 14496-12, 8.5.2).
///
/// An entry is a box with the FourCC of the codec as its type.
package struct SampleDescription: Hashable, Sendable {
  /// The bytes of the entry, including its header.
  package private(set) var bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  private static let (bitRates, pixelAspect): (UInt32, UInt32) = (
    0x6274_7274, 0x7061_7370  // btrt, pasp
  )
  private static let (streamDescriptor, wave): (UInt32, UInt32) = (
    0x6573_6473, 0x7761_7665  // esds, wave
  )

  /// The FourCC of the codec.
  package var type: UInt32 { bytes.count >= 8 ? UInt32(Box.number(bytes[4..<8])) : 0 }

  /// This description with the FourCC `hvc1` instead of `hev1`, which some players reject.
  ///
  /// `hev1` allows parameter sets inside the frames. All that are needed are in the description as well.
  package var namingPlayableHEVC: SampleDescription {
    guard type == 0x6865_7631 else { return self }  // hev1
    var named = bytes
    named.replaceSubrange(4..<8, with: Array("hvc1".utf8))
    return SampleDescription(named)
  }

  /// The entries in an `stsd` box; empty if it is malformed.
  package static func list(in box: Box, of bytes: [UInt8]) -> [SampleDescription] {
    // The version, the flags and the number of entries precede them.
    Box.list(in: bytes, from: Int(box.start + box.headBytes) + 8, to: Int(box.end)).map {
      SampleDescription(Array(bytes[Int($0.start)..<Int($0.end)]))
    }
  }

  /// The number of bytes before the boxes in the entry of a video track: its header and 78 fixed bytes.
  private static let videoHeadBytes = 86

  /// The number of bytes before the boxes in the entry of an audio track.
  private var audioHeadBytes: Int {
    // QuickTime's versions 1 and 2 have further fields.
    switch bytes.count >= 18 ? Box.number(bytes[16..<18]) : 0 {
    case 1: 36 + 16
    case 2: 36 + 36
    default: 36
    }
  }

  /// Sets a box in the entry of a video track; an old box of the type is replaced.
  ///
  /// `box` has its header. Returns false if the entry is too short for a video track.
  package mutating func setVideoBox(_ box: [UInt8], _ type: UInt32) -> Bool {
    guard bytes.count >= Self.videoHeadBytes else { return false }
    set(box, type, after: Self.videoHeadBytes)
    return true
  }

  private mutating func set(_ box: [UInt8], _ type: UInt32, after head: Int) {
    let old = Box.list(in: bytes, from: head, to: bytes.count).first { $0.type == type }
    let range = old.map { Int($0.start)..<Int($0.end) } ?? bytes.count..<bytes.count
    bytes.replaceSubrange(range, with: box)
    withUnsafeBytes(of: UInt32(clamping: bytes.count).bigEndian) {
      bytes.replaceSubrange(0..<4, with: $0)
    }
  }

  /// The bytes of a box in the entry of a video track; nil if it has no such box.
  package func videoBox(_ type: UInt32) -> [UInt8]? {
    Box.list(in: bytes, from: Self.videoHeadBytes, to: bytes.count).first { $0.type == type }
      .map { Array(bytes[Int($0.start)..<Int($0.end)]) }
  }

  /// Adds the pixel aspect ratio of another entry of a video track, unless this one states its own.
  package mutating func addPixelAspect(of other: SampleDescription) {
    guard videoBox(Self.pixelAspect) == nil, let box = other.videoBox(Self.pixelAspect) else {
      return
    }
    _ = setVideoBox(box, Self.pixelAspect)
  }

  /// This entry of a video track without its bit rates and the number of its track.
  ///
  /// Files of one encoder may differ in these alone. A rate of 0 in `esds` is unknown, and `btrt` is left out.
  package var withoutBitRates: SampleDescription {
    var plain = self
    if let stream = plain.elementaryStream(isVideo: true), stream.decoder + 13 <= bytes.count {
      let fields = [stream.number..<stream.number + 2, stream.decoder + 2..<stream.decoder + 13]
      for field in fields {
        plain.bytes.replaceSubrange(field, with: repeatElement(0, count: field.count))
      }
    }
    if plain.videoBox(Self.bitRates) != nil {
      plain.set([], Self.bitRates, after: Self.videoHeadBytes)
    }
    return plain
  }

  /// States the number and the average bit rate of a finished track.
  ///
  /// - Parameters:
  ///   - rate: The average bit rate in bits per second; 0 if unknown.
  ///   - trackNumber: The ID of the track.
  ///   - isVideo: Whether this is the entry of a video track; otherwise it is that of an audio track.
  ///   - addsBox: Whether a `btrt` box is added, as in MP4, if the entry has none.
  package mutating func state(
    bitRate rate: UInt32, trackNumber: UInt32, isVideo: Bool, addsBox: Bool
  ) {
    let head = isVideo ? Self.videoHeadBytes : audioHeadBytes
    guard head <= bytes.count else { return }
    let stream = elementaryStream(isVideo: isVideo)
    if let stream {
      withUnsafeBytes(of: UInt16(truncatingIfNeeded: trackNumber).bigEndian) {
        bytes.replaceSubrange(stream.number..<stream.number + 2, with: $0)
      }
    }
    guard rate > 0 else { return }
    // The object type, the stream type and a buffer size of 24 bits precede the rates.
    if let stream, stream.decoder + 13 <= bytes.count { state(rate, at: stream.decoder + 5) }
    let old = Box.list(in: bytes, from: head, to: bytes.count).first { $0.type == Self.bitRates }
    if let old, old.byteCount >= 20 {
      state(rate, at: Int(old.start) + 12)
    } else if addsBox {
      var box = BoxBytes()
      box.box(Self.bitRates) { for number in [0, rate, rate] { $0.append(number) } }
      set(box.bytes, Self.bitRates, after: head)
    }
  }

  /// Writes an average rate after a maximum rate, which is at least as great.
  private mutating func state(_ rate: UInt32, at position: Int) {
    var rates = BoxBytes()
    rates.append(max(rate, UInt32(Box.number(bytes[position..<position + 4]))))
    rates.append(rate)
    bytes.replaceSubrange(position..<position + 8, with: rates.bytes)
  }

  /// The MPEG-4 object type of the codec (`esds`); nil if the entry states none.
  ///
  /// AAC has the types 0x40, and 0x66 to 0x68 in its MPEG-2 form.
  package func objectType(isVideo: Bool) -> UInt8? {
    elementaryStream(isVideo: isVideo).map { bytes[$0.decoder] }
  }

  /// The positions of the stream's number and of the decoder's configuration in the `esds` box (ISO/IEC
  /// 14496-1, 7.2.6).
  private func elementaryStream(isVideo: Bool) -> (number: Int, decoder: Int)? {
    let head = isVideo ? Self.videoHeadBytes : audioHeadBytes
    guard head <= bytes.count else { return nil }
    var boxes = Box.list(in: bytes, from: head, to: bytes.count)
    if let wave = boxes.first(where: { $0.type == Self.wave }) {
      boxes += Box.list(in: bytes, from: Int(wave.start) + 8, to: Int(wave.end))
    }
    guard let box = boxes.first(where: { $0.type == Self.streamDescriptor }) else { return nil }
    var position = Int(box.start) + 12
    let end = Int(box.end)
    /// Skips the tag and the length of a descriptor.
    func skip(tag: UInt8) -> Bool {
      guard position < end, bytes[position] == tag else { return false }
      position += 1
      for _ in 0..<4 where position < end {
        position += 1
        if bytes[position - 1] & 0x80 == 0 { break }
      }
      return position < end
    }
    guard skip(tag: 3), position + 3 <= end else { return nil }
    let number = position
    let flags = bytes[position + 2]
    // Only these three fields are optional: a reference, a name and a clock.
    position += 3 + (flags & 0x80 != 0 ? 2 : 0) + (flags & 0x20 != 0 ? 2 : 0)
    guard flags & 0x40 == 0, skip(tag: 4) else { return nil }
    return (number, position)
  }

  /// Whether an audio entry of QuickTime fits tables that list each packet.
  ///
  /// With the versions 0 and 1, tables count the samples inside packets of constant size, unless the
  /// compression ID is -2 (QuickTime File Format).
  package var fitsPacketTables: Bool {
    guard uncompressedSampleBytes == nil, bytes.count >= 30 else { return true }
    return Box.number(bytes[16..<18]) > 1 || Box.number(bytes[28..<30]) == 0xFFFE
  }

  /// The number of bytes of a sample of uncompressed audio, for all channels.
  ///
  /// Nil for compressed audio.
  package var uncompressedSampleBytes: Int? {
    func number(_ offset: Int, _ count: Int) -> Int {
      offset + count <= bytes.count ? Int(Box.number(bytes[offset..<offset + count])) : 0
    }
    let channels = number(24, 2)
    let bytesPerSample: Int? =
      switch type {
      case 0x736F_7774, 0x7477_6F73: number(26, 2) / 8  // sowt, twos
      case 0x7261_7720, 0x756C_6177, 0x616C_6177: 1  // raw, ulaw, alaw
      case 0x696E_3234: 3  // in24
      case 0x696E_3332, 0x666C_3332: 4  // in32, fl32
      case 0x666C_3634: 8  // fl64
      case 0x6C70_636D where number(16, 2) == 2: nil  // lpcm
      default: 0
      }
    guard let bytesPerSample else { return max(1, number(64, 4)) }
    return bytesPerSample * channels > 0 ? bytesPerSample * channels : nil
  }
}

/// Makes the `colr` box of a full-range track, because libavformat does not store the range in
/// MOV.
///
/// libavformat writes QuickTime's `nclc` form of the box, which has no range flag. The `nclx` form
/// has such a flag (ISO/IEC 14496-12, 12.1.5). Phones write this form into MOV files, and FFmpeg
/// reads it there.
package enum ColorBox {
  package static let type: UInt32 = 0x636F_6C72  // colr
  private static let onScreen: UInt32 = 0x6E63_6C78  // nclx

  /// The color description, in code points of ITU-T H.273.
  package struct CodePoints {
    package var primaries: UInt16
    package var transfer: UInt16
    package var matrix: UInt16

    package init(primaries: UInt16, transfer: UInt16, matrix: UInt16) {
      self.primaries = primaries
      self.transfer = transfer
      self.matrix = matrix
    }
  }

  /// The bytes of an `nclx` color box, in which the range flag is set to full range.
  package static func bytes(_ codePoints: CodePoints) -> [UInt8] {
    var made = BoxBytes()
    made.box(type) { box in
      box.append(onScreen)
      box.append(codePoints.primaries)
      box.append(codePoints.transfer)
      box.append(codePoints.matrix)
      box.append(UInt8(0x80))
    }
    return made.bytes
  }
}

/// Reads and writes the `clap` box of a track, which states the part of the frames that players
/// show (ISO/IEC 14496-12, 12.1.4).
///
/// libavformat supports this box only since FFmpeg 7.1. The track header still contains the size of
/// the whole frames, to which players scale the part.
package enum CleanApertureBox {
  package static let type: UInt32 = 0x636C_6170  // clap

  /// The size of a part around the center of the frames, in pixels.
  package struct Size: Hashable, Sendable {
    package let width: Rational
    package let height: Rational

    package init(width: Rational, height: Rational) {
      (self.width, self.height) = (width, height)
    }
  }

  /// The bytes of the box.
  ///
  /// The numerators and denominators of the size must fit 32 bits.
  package static func bytes(_ size: Size) -> [UInt8] {
    var made = BoxBytes()
    made.box(type) { box in
      // The last two numbers are the offsets of the part from the center, which are zero.
      for part in [size.width, size.height, .zero, .zero] {
        box.append(UInt32(clamping: part.numerator))
        box.append(UInt32(clamping: part.denominator))
      }
    }
    return made.bytes
  }

  /// Reads the box of a sample description.
  ///
  /// Returns nil if it has no such box.
  package static func read(from description: SampleDescription) -> Size? {
    guard let box = description.videoBox(type), box.count == 40 else { return nil }
    func rational(_ offset: Int) -> Rational {
      Rational(
        Int128(Box.number(box[offset..<offset + 4])),
        over: Int128(Box.number(box[offset + 4..<offset + 8])))
    }
    let size = Size(width: rational(8), height: rational(16))
    return size.width.isValid && size.height.isValid ? size : nil
  }
}
