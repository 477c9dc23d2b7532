// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA

/// Converts samples to the sample layout of a sound card.
enum InterleavedSamples {
  /// Interleaves the channels, and clips samples to full scale.
  static func bytes(of channels: [[Float]], _ layout: SampleLayout) -> [UInt8] {
    let count = channels.first?.count ?? 0
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count * channels.count * layout.byteCount)
    for index in 0..<count {
      for channel in channels { append(channel[index], layout, to: &bytes) }
    }
    return bytes
  }

  private static func append(_ sample: Float, _ layout: SampleLayout, to bytes: inout [UInt8]) {
    let limited = Double(max(-1, min(1, sample.isNaN ? 0 : sample)))
    func integer(_ bits: Int) -> Int32 {
      let scale = Double(Int64(1) << (bits - 1))
      return Int32(min(scale - 1, (limited * scale).rounded()))
    }
    func add(_ value: some FixedWidthInteger, _ length: Int) {
      withUnsafeBytes(of: value.littleEndian) { bytes += $0.prefix(length) }
    }
    switch layout {
    case .s16: add(integer(16), 2)
    case .s24: add(integer(24), 4)
    case .s24Packed: add(integer(24), 3)
    case .s32: add(integer(32), 4)
    case .float: add(Float(limited).bitPattern, 4)
    }
  }
}
