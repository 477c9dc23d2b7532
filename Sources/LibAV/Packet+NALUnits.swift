// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMovieFormat

extension Packet {
  /// Returns the packet with a length prefix before each NAL unit instead of a start code.
  ///
  /// - Parameter lengthSize: The size of a length prefix in bytes. Nil returns the packet
  ///   unchanged.
  /// - Returns: The converted packet, with the same times.
  /// - Throws: `LibAVError` if memory is unavailable, or if a NAL unit is too long for the prefix.
  package func lengthPrefixed(_ lengthSize: Int?) throws(LibAVError) -> Packet {
    guard let lengthSize else { return self }
    let bytes = withBytes { buffer -> [UInt8]? in
      var bytes: [UInt8] = []
      bytes.reserveCapacity(buffer.count + 16)
      var units = NALUnitReader(buffer, lengthSize: nil)
      while let unit = units.next() {
        guard lengthSize >= 4 || unit.count < 1 << (8 * lengthSize) else { return nil }
        for byte in (0..<lengthSize).reversed() {
          bytes.append(UInt8(truncatingIfNeeded: unit.count >> (8 * byte)))
        }
        bytes += buffer[unit]
      }
      return bytes
    }
    guard let bytes, !bytes.isEmpty else {
      throw LibAVError(
        "store", "a frame in units of \(lengthSize) bytes of length", code: -22)
    }
    let pts = pts ?? 0
    let made = bytes.withUnsafeBytes { buffer in
      Result { () throws(LibAVError) in
        try Packet(
          copying: buffer, pts: pts, dts: dts ?? pts, duration: duration, isKeyFrame: isKeyFrame)
      }
    }
    return try made.get()
  }
}

extension Packet {
  /// Finds parameter sets between the two fields of an H.264 frame.
  ///
  /// - Parameter lengthSize: The size of a length prefix in bytes; nil for start codes.
  /// - Returns: The offset in bytes at which they begin; nil if there are none.
  func parameterChange(_ lengthSize: Int?) -> Int? {
    withBytes { bytes in
      var units = NALUnitReader(bytes, lengthSize: lengthSize)
      var (sliceEnd, change): (Int?, Int?) = (nil, nil)
      while let unit = units.next() {
        switch bytes[unit.lowerBound] & 0x1F {
        case 1...5:
          if let change { return change }
          sliceEnd = unit.upperBound
        case 7, 8: change = change ?? sliceEnd
        default: break
        }
      }
      return nil
    }
  }

  /// Returns the packet with the bytes before an offset, and one without times with the others.
  ///
  /// - Throws: `LibAVError` if there is no memory.
  func split(at offset: Int) throws(LibAVError) -> (Packet, Packet) {
    let first = try changed { $0.pointee.size = Int32(clamping: offset) }
    let second = try changed { packet in
      packet.pointee.data += offset
      packet.pointee.size -= Int32(clamping: offset)
      (packet.pointee.pts, packet.pointee.dts) = (CFFmpeg_NOPTS, CFFmpeg_NOPTS)
    }
    return (first, second)
  }
}

extension H264Headers {
  /// Reads the parameter sets from the codec parameters of a track.
  ///
  /// Returns nil if the track is not H.264, or if its codec parameters contain none.
  package init?(_ parameters: CodecParameters) {
    guard parameters.codecName == "h264" else { return nil }
    self.init(parameters.extradata, unitLengthSize: parameters.unitLengthSize)
  }
}
