// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Encodes blocks of 16 by 16 pixels, independent of each other, for a baseline JPEG in 4:2:0.
///
/// The encoder uses the quantization and Huffman tables of an existing JPEG. The bytes of a block
/// include the marker after it: a restart marker or, after the last block, the end-of-image marker.
///
/// libjpeg-turbo has no call for single blocks. As a file of its own, a block takes it 57 000
/// instructions, most of them for tables and headers, and this encoder 18 600.
struct JPEGBlockEncoder: Sendable {
  /// Huffman codes and their lengths, by symbol.
  private struct Codes {
    var codes: [UInt32] = Array(repeating: 0, count: 256)
    var lengths: [Int] = Array(repeating: 0, count: 256)
  }

  private let blockCount: Int
  private let transform: [JPEGTransform]
  private let dcCodes: [Codes]
  private let acCodes: [Codes]
  /// The quantized coefficients of one 8 by 8 block, in zigzag order.
  private var coefficients: [Int32] = Array(repeating: 0, count: 64)
  /// The 64 samples of a block, transformed in place.
  private var samples: [Float] = Array(repeating: 0, count: 64)
  /// Whether the bytes of a block exceeded the memory for them.
  private(set) var isOverfull = false

  /// Creates an encoder with the tables of a JPEG.
  ///
  /// - Throws: `CallFailure` if the tables are not those of a baseline JPEG with three components.
  init(tablesOf parts: JPEGParts, blockCount: Int) throws(CallFailure) {
    self.blockCount = blockCount
    var (quantizers, codes) = ([Int: [UInt8]](), [Int: Codes]())
    var (quantizerOf, codesOf) = ([Int](), [Int]())
    for segment in parts.segments {
      let bytes = Array(segment.dropFirst(4))
      switch segment[1] {
      case 0xDB:  // DQT: a table number and 64 quantizer steps in zigzag order
        for start in stride(from: 0, to: bytes.count - 64, by: 65) {
          quantizers[Int(bytes[start])] = Array(bytes[start + 1...start + 64])
        }
      case 0xC4:  // DHT: a table number, the number of codes of each length, and the symbols
        var rest = bytes[...]
        while rest.count > 17, let name = rest.first {
          let counts = rest.dropFirst().prefix(16).map(Int.init)
          let symbols = rest.dropFirst(17).prefix(counts.reduce(0, +))
          codes[Int(name)] = Self.codes(counts, Array(symbols))
          rest = rest.dropFirst(17 + symbols.count)
        }
      case 0xC0 where bytes.count >= 15:  // SOF0: the quantization table of each component
        quantizerOf = [8, 11, 14].map { Int(bytes[$0]) }
      case 0xDA where bytes.count >= 7:  // SOS: the Huffman tables of each component
        codesOf = [2, 4, 6].map { Int(bytes[$0] & 15) }
      default: break
      }
    }
    transform = quantizerOf.compactMap { quantizers[$0].map(JPEGTransform.init) }
    dcCodes = codesOf.compactMap { codes[$0] }
    acCodes = codesOf.compactMap { codes[$0 | 16] }
    guard transform.count == 3, dcCodes.count == 3, acCodes.count == 3 else {
      throw CallFailure("take apart", "the tables of a JPEG", code: -22)
    }
  }

  /// Assigns codes to symbols in order of length, as specified in T.81, annex C.
  private static func codes(_ counts: [Int], _ symbols: [UInt8]) -> Codes {
    var (result, code, next) = (Codes(), UInt32(0), 0)
    for (index, count) in counts.enumerated() {
      for symbol in symbols[next..<next + count] {
        result.codes[Int(symbol)] = code
        result.lengths[Int(symbol)] = index + 1
        code += 1
      }
      next += count
      code <<= 1
    }
    return result
  }

  /// Encodes a block, with the marker after it, and returns the number of bytes.
  mutating func encode(
    column: Int, row: Int, of image: borrowing SceneImage,
    into memory: UnsafeMutableRawBufferPointer
  ) -> Int {
    var writer = BitWriter(memory)
    var last: Int32 = 0
    for part in 0..<4 {
      let x = column * 16 + part % 2 * 8
      let y = row * 16 + part / 2 * 8
      last = encode(
        image.luma, from: y * image.stride + x, stride: image.stride, component: 0,
        after: last, into: &writer)
    }
    let start = row * 8 * (image.stride / 2) + column * 8
    _ = encode(
      image.cb, from: start, stride: image.stride / 2, component: 1, after: 0, into: &writer)
    _ = encode(
      image.cr, from: start, stride: image.stride / 2, component: 2, after: 0, into: &writer)
    let index = row * (image.stride / 16) + column
    // The markers RST0 to RST7 follow the blocks in turn. EOI follows the last block.
    writer.end(marker: index == blockCount - 1 ? 0xD9 : 0xD0 + UInt8(index % 8))
    if writer.isOverfull { isOverfull = true }
    return writer.count
  }

  /// Encodes an 8 by 8 block and returns its DC coefficient.
  private mutating func encode(
    _ plane: borrowing [UInt8], from start: Int, stride: Int, component: Int, after last: Int32,
    into writer: inout BitWriter
  ) -> Int32 {
    let isFlat = plane.withUnsafeBytes { plane in
      let first = UInt64(plane[start]) &* 0x0101_0101_0101_0101
      return (0..<8).allSatisfy {
        plane.loadUnaligned(fromByteOffset: start + $0 * stride, as: UInt64.self) == first
      }
    }
    var lastNonZero = 0
    if isFlat {
      coefficients[0] = transform[component].coefficient(ofFlat: plane[start])
    } else {
      plane.withUnsafeBufferPointer { plane in
        samples.withUnsafeMutableBufferPointer { samples in
          for y in 0..<8 {
            for x in 0..<8 { samples[y * 8 + x] = Float(plane[start + y * stride + x]) - 128 }
          }
        }
      }
      lastNonZero = transform[component].transform(&samples, into: &coefficients)
    }
    writer.append(coefficients[0] - last, codes: dcCodes[component], zeros: 0)
    var zeros = 0
    if lastNonZero > 0 {
      for index in 1...lastNonZero {
        let value = coefficients[index]
        guard value != 0 else {
          zeros += 1
          continue
        }
        while zeros > 15 {
          writer.append(symbol: 0xF0, codes: acCodes[component])
          zeros -= 16
        }
        writer.append(value, codes: acCodes[component], zeros: zeros)
        zeros = 0
      }
    }
    if lastNonZero < 63 { writer.append(symbol: 0, codes: acCodes[component]) }
    return coefficients[0]
  }

  /// Writes codes bit by bit and inserts a zero byte after each 0xFF.
  private struct BitWriter {
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    private(set) var isOverfull = false
    private var bits: UInt64 = 0
    private var bitCount = 0

    init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

    /// Writes a coefficient: the Huffman code for its bit length and for the number of
    /// zeros before it, then its bits.
    mutating func append(_ value: Int32, codes: borrowing Codes, zeros: Int) {
      let length = 32 - value.magnitude.leadingZeroBitCount
      append(symbol: zeros << 4 | length, codes: codes)
      let bits = UInt32(bitPattern: value < 0 ? value - 1 : value)
      append(bits & ((1 << UInt32(length)) - 1), length)
    }

    mutating func append(symbol: Int, codes: borrowing Codes) {
      append(codes.codes[symbol], codes.lengths[symbol])
    }

    private mutating func append(_ value: UInt32, _ length: Int) {
      bits = bits << UInt64(length) | UInt64(value)
      bitCount += length
      while bitCount >= 8 {
        bitCount -= 8
        let byte = UInt8(truncatingIfNeeded: bits >> UInt64(bitCount))
        append(byte)
        if byte == 0xFF { append(0) }
      }
    }

    private mutating func append(_ byte: UInt8) {
      guard count < memory.count else {
        isOverfull = true
        return
      }
      memory[count] = byte
      count += 1
    }

    /// Pads the last byte with ones and writes a marker.
    mutating func end(marker: UInt8) {
      if bitCount > 0 { append((1 << UInt32(8 - bitCount)) - 1, 8 - bitCount) }
      append(0xFF as UInt8)
      append(marker)
    }
  }
}

/// The discrete cosine transform of 8 by 8 samples, and the quantization of its coefficients.
///
/// The method of Arai, Agui and Nakajima needs five multiplications for eight samples. Its result
/// lacks a constant factor per coefficient, which is merged into the quantization.
struct JPEGTransform: Sendable {
  /// The factor for each DCT coefficient, which includes the division by the quantizer step, in
  /// zigzag order.
  private let factors: [Float]
  /// For each position in zigzag order, the index of the coefficient in row order.
  private let order: [Int]
  private let flatFactor: Float

  /// Creates a transform from a quantization table in zigzag order.
  init(quantizer: [UInt8]) {
    let scales: [Float] = [
      1, 1.387039845, 1.306562965, 1.175875602, 1, 0.785694958, 0.5411961, 0.275899379,
    ]
    // Zigzag order goes along the diagonals from the upper left corner, alternately upward and
    // downward.
    let positions = (0..<64).sorted { first, second in
      func key(_ position: Int) -> Int {
        let (x, y) = (position % 8, position / 8)
        return (x + y) * 8 + ((x + y) % 2 == 0 ? x : y)
      }
      return key(first) < key(second)
    }
    order = positions
    factors = zip(quantizer, positions).map { step, position in
      1 / (Float(step) * scales[position % 8] * scales[position / 8] * 8)
    }
    flatFactor = 8 / Float(quantizer[0])
  }

  /// The DC coefficient of a block whose samples are all equal.
  ///
  /// Its other coefficients are zero.
  func coefficient(ofFlat sample: UInt8) -> Int32 {
    Int32(((Float(sample) - 128) * flatFactor).rounded())
  }

  /// Transforms samples in place.
  ///
  /// - Parameters:
  ///   - samples: The block, row by row, with values centered on 0.
  ///   - coefficients: Receives the quantized coefficients in zigzag order, at least up to the last
  ///     nonzero one.
  /// - Returns: The index of the last nonzero coefficient.
  func transform(_ samples: inout [Float], into coefficients: inout [Int32]) -> Int {
    samples.withUnsafeMutableBufferPointer { samples in
      coefficients.withUnsafeMutableBufferPointer { coefficients in
        for row in 0..<8 { Self.transform(samples, from: row * 8, step: 1) }
        for column in 0..<8 { Self.transform(samples, from: column, step: 8) }
        var last = 0
        for index in 0..<64 {
          let value = samples[order[index]] * factors[index]
          // The addition of 1.5 · 2^23 rounds the value: the low bits of the mantissa then hold the
          // nearest integer.
          let rounded = Int32(bitPattern: (value + 12_582_912).bitPattern) - 0x4B40_0000
          coefficients[index] = rounded
          if rounded != 0 { last = index }
        }
        return last
      }
    }
  }

  private static func transform(
    _ samples: UnsafeMutableBufferPointer<Float>, from start: Int, step: Int
  ) {
    func sample(_ index: Int) -> Float { samples[start + index * step] }
    let (sum0, difference0) = (sample(0) + sample(7), sample(0) - sample(7))
    let (sum1, difference1) = (sample(1) + sample(6), sample(1) - sample(6))
    let (sum2, difference2) = (sample(2) + sample(5), sample(2) - sample(5))
    let (sum3, difference3) = (sample(3) + sample(4), sample(3) - sample(4))
    // Computes the DCT coefficients with even indices.
    let (outer, outerDifference) = (sum0 + sum3, sum0 - sum3)
    let (inner, innerDifference) = (sum1 + sum2, sum1 - sum2)
    let turned = (innerDifference + outerDifference) * 0.707106781
    samples[start] = outer + inner
    samples[start + 4 * step] = outer - inner
    samples[start + 2 * step] = outerDifference + turned
    samples[start + 6 * step] = outerDifference - turned
    // Computes the DCT coefficients with odd indices.
    let (first, middle, last) = (
      difference3 + difference2, difference2 + difference1, difference1 + difference0
    )
    let common = (first - last) * 0.382683433
    let low = 0.5411961 * first + common
    let high = 1.306562965 * last + common
    let half = middle * 0.707106781
    let (above, below) = (difference0 + half, difference0 - half)
    samples[start + 5 * step] = below + low
    samples[start + 3 * step] = below - low
    samples[start + step] = above + high
    samples[start + 7 * step] = above - high
  }
}
