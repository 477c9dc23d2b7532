// SPDX-License-Identifier: Apache-2.0

/// An H.264 byte stream of interlaced frames whose fields are coded separately, as AVCHD cameras
/// write it.
///
/// FFmpeg has no encoder for such frames. Each frame has 32x32 gray pixels in uncompressed
/// macroblocks (I_PCM), with one luma value per field (Rec. ITU-T H.264, 7.3).
package struct FieldCodedVideo {
  package let frameCount: Int
  /// The frame between whose fields the scaling matrix changes, as cameras of Sony do; nil for none.
  ///
  /// All fields then have one DC coefficient per macroblock, instead of uncompressed samples.
  package let frameWithChange: Int?

  package init(frameCount: Int, frameWithChange: Int? = nil) {
    (self.frameCount, self.frameWithChange) = (frameCount, frameWithChange)
  }

  /// The luma value of all pixels of a field.
  package static func luma(ofFrame frame: Int, isBottom: Bool) -> UInt8 {
    UInt8(40 + 3 * frame + (isBottom ? 1 : 0))
  }

  /// The byte stream, each NAL unit with a start code.
  package var bytes: [UInt8] {
    let isScaled = frameWithChange != nil
    var stream =
      Self.unit(0x67, Self.sps(isHigh: isScaled).bytes)
      + Self.unit(0x68, Self.pps(matrix: isScaled ? 16 : nil).bytes)
    for frame in 0..<frameCount {
      for isBottom in [false, true] {
        let isFirst = frame == 0 && !isBottom
        if frame == frameWithChange, isBottom {
          stream += Self.unit(0x68, Self.pps(matrix: 64).bytes)
        }
        let field = Self.field(frame, isBottom: isBottom, isFirst: isFirst, isCoded: isScaled)
        stream += Self.unit(isFirst ? 0x65 : 0x61, field.bytes)
      }
    }
    return stream
  }

  /// Main or High profile, level 3, output in decoding order, 2x2 macroblocks per frame (half of that
  /// per field).
  private static func sps(isHigh: Bool) -> BitWriter {
    var bits = BitWriter()
    for byte in [isHigh ? 100 : 77, 0, 30] { bits.append(byte, count: 8) }
    bits.append(code: 0)
    if isHigh {
      // chroma_format_idc, bit depths, qpprime_y_zero_transform_bypass, seq_scaling_matrix_present.
      for number in [1, 0, 0] { bits.append(code: number) }
      bits.append(0, count: 2)
    }
    // log2_max_frame_num - 4, pic_order_cnt_type, max_num_ref_frames.
    for number in [0, 2, 1] { bits.append(code: number) }
    bits.append(0, count: 1)
    bits.append(code: 1)
    bits.append(code: 0)
    // These are frame_mbs_only, mb_adaptive_frame_field, direct_8x8_inference, frame_cropping, and
    // VUI present.
    for flag in [0, 0, 1, 0, 0] { bits.append(flag, count: 1) }
    bits.finish()
    return bits
  }

  /// A PPS, with a flat scaling matrix of the luma of intra blocks if `matrix` is
  /// not nil.
  private static func pps(matrix: Int?) -> BitWriter {
    var bits = BitWriter()
    bits.append(code: 0)
    bits.append(code: 0)
    bits.append(0, count: 2)
    for _ in 0..<3 { bits.append(code: 0) }
    bits.append(0, count: 3)
    // pic_init_qp_minus26 is 10 with a matrix, so that one coefficient is visible.
    bits.append(code: matrix == nil ? 0 : 19)
    for _ in 0..<2 { bits.append(code: 0) }
    // deblocking_filter_control_present_flag is set, so slices can disable deblocking.
    bits.append(0b100, count: 3)
    if let matrix {
      // transform_8x8_mode, pic_scaling_matrix_present, pic_scaling_list_present.
      bits.append(0b011, count: 3)
      let change = matrix - 8
      bits.append(code: change > 0 ? 2 * change - 1 : -2 * change)
      for _ in 0..<15 { bits.append(code: 0) }
      bits.append(0, count: 5)
      // second_chroma_qp_index_offset.
      bits.append(code: 0)
    }
    bits.finish()
    return bits
  }

  private static func field(
    _ frame: Int, isBottom: Bool, isFirst: Bool, isCoded: Bool
  ) -> BitWriter {
    var bits = BitWriter()
    // These are first_mb_in_slice, slice_type (7: I), and pic_parameter_set_id.
    for number in [0, 7, 0] { bits.append(code: number) }
    bits.append(frame % 16, count: 4)
    bits.append(1, count: 1)
    bits.append(isBottom ? 1 : 0, count: 1)
    if isFirst {
      bits.append(code: 0)
      bits.append(0, count: 2)
    } else {
      bits.append(0, count: 1)
    }
    // This is slice_qp_delta 0, followed by disable_deblocking_filter_idc 1.
    bits.append(code: 0)
    bits.append(code: 1)
    for _ in 0..<2 where isCoded {
      // I_16x16 with DC prediction, intra_chroma_pred_mode, mb_qp_delta.
      for number in [3, 0, 0] { bits.append(code: number) }
      // One coefficient of 1: coeff_token, its sign, total_zeros.
      bits.append(0b0101, count: 4)
    }
    for _ in 0..<2 where !isCoded {
      bits.append(code: 25)
      bits.align()
      for _ in 0..<256 { bits.append(Int(luma(ofFrame: frame, isBottom: isBottom)), count: 8) }
      for _ in 0..<128 { bits.append(128, count: 8) }
    }
    bits.finish()
    return bits
  }

  /// A NAL unit with start code and emulation prevention bytes.
  private static func unit(_ head: UInt8, _ contents: [UInt8]) -> [UInt8] {
    var unit: [UInt8] = [0, 0, 0, 1, head]
    var zeros = 0
    for byte in contents {
      if zeros >= 2, byte <= 3 {
        unit.append(3)
        zeros = 0
      }
      unit.append(byte)
      zeros = byte == 0 ? zeros + 1 : 0
    }
    return unit
  }
}

/// A bit writer, most significant bit first.
private struct BitWriter {
  private(set) var bytes: [UInt8] = []
  private var used = 8

  mutating func append(_ value: Int, count: Int) {
    for bit in (0..<count).reversed() {
      if used == 8 {
        bytes.append(0)
        used = 0
      }
      bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << UInt8(7 - used)
      used += 1
    }
  }

  /// Appends an Exp-Golomb code.
  mutating func append(code value: Int) {
    let length = Int.bitWidth - (value + 1).leadingZeroBitCount
    append(0, count: length - 1)
    append(value + 1, count: length)
  }

  mutating func align() { used = 8 }

  /// Appends the RBSP stop bit.
  mutating func finish() { append(1, count: 1) }
}
