// SPDX-License-Identifier: Apache-2.0

package import OvercrankMovieFormat

extension Packet {
  /// The same picture, each unit with its length before it instead of a start code.
  ///
  /// - Parameter lengthSize: How many bytes give a length; nil leaves it as it is.
  /// - Returns: The packet, whose times are those of this one.
  /// - Throws: `LibAVError` when there is no memory, or a unit is too long.
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
        "store", "a picture in units of \(lengthSize) bytes of length", code: -22)
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

extension H264Headers {
  /// Reads the headers of a track; nil for one that is no H.264, or has none.
  package init?(_ parameters: CodecParameters) {
    guard parameters.codecName == "h264" else { return nil }
    self.init(parameters.extradata, unitLengthSize: parameters.unitLengthSize)
  }
}
