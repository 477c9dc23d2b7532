// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankRaster

/// The luma of a decoded frame.
struct LumaPlane {
  private let frame: MediaFrame
  private let image: LumaImage
  let type: Int32
  /// The number of rows from one row that is read to the next; above 1 for tall frames.
  private let rowStep: Int

  private static let side = 16

  /// The luma of a frame, converted if its format has no plane of 8-bit luma.
  ///
  /// Nil for a frame that cannot be converted.
  init?(_ frame: MediaFrame, _ converter: inout FrameConverter) {
    let isPlain =
      PixelComponents(frame.pixelFormat).map {
        !$0.isRGB && $0.bytesPerSample == 1 && $0.components.first?.step == 1
      } ?? false
    guard let luma = isPlain ? frame : try? converter.convert(frame), let data = luma.planeData(0)
    else { return nil }
    self.frame = luma
    image = LumaImage(
      base: data, width: luma.width, height: luma.height, bytesPerRow: luma.bytesPerRow(0))
    type = frame.frameType
    rowStep = max(1, min(4, luma.height / 540))
  }

  var width: Int { image.width }
  var height: Int { image.height }
  private var start: UnsafePointer<UInt8> { image.base }
  private var stride: Int { image.bytesPerRow }

  /// Whether the planes have equal sizes.
  func hasSize(of other: LumaPlane) -> Bool { width == other.width && height == other.height }

  /// Calls a closure with the offset of each whole block.
  ///
  /// Columns and rows after the last whole block are left out, unless the frame is smaller than a
  /// block.
  func forEachBlock(_ body: (Int) -> Void) {
    for y in Swift.stride(from: 0, through: max(0, height - Self.side), by: Self.side) {
      for x in Swift.stride(from: 0, through: max(0, width - Self.side), by: Self.side) {
        body(y * stride + x)
      }
    }
  }

  /// The mean absolute luma difference between a block of this plane and the same block of another
  /// plane.
  func difference(to other: LumaPlane, at offset: Int) -> Double {
    let rows = min(Self.side, height)
    guard width >= Self.side, stride == other.stride else {
      return slowDifference(to: other, at: offset, rows: rows)
    }
    var sums = SIMD16<UInt16>(repeating: 0)
    var count = 0
    for row in Swift.stride(from: 0, to: rows, by: rowStep) {
      let position = offset + row * stride
      let one = UnsafeRawPointer(start + position).loadUnaligned(as: SIMD16<UInt8>.self)
      let two = UnsafeRawPointer(other.start + position).loadUnaligned(as: SIMD16<UInt8>.self)
      let larger = one.replacing(with: two, where: two .> one)
      let smaller = two.replacing(with: one, where: two .> one)
      sums &+= SIMD16<UInt16>(truncatingIfNeeded: larger &- smaller)
      count += Self.side
    }
    return Double(sums.wrappedSum()) / Double(count)
  }

  private func slowDifference(to other: LumaPlane, at offset: Int, rows: Int) -> Double {
    let (x, y) = (offset % stride, offset / stride)
    let columns = min(Self.side, width)
    var sum = 0
    for row in y..<y + rows {
      for column in x..<x + columns {
        sum += abs(
          Int(start[row * stride + column]) - Int(other.start[row * other.stride + column]))
      }
    }
    return Double(sum) / Double(rows * columns)
  }

  /// The mean luma of horizontal strips of equal height, from the top.
  func stripBrightness(_ count: Int) -> [Double] {
    (0..<count).map { strip in
      let first = height * strip / count
      let end = min(height, max(first + 1, height * (strip + 1) / count))
      var (sum, pixels) = (0, 0)
      for row in Swift.stride(from: first, to: end, by: 4) {
        for column in Swift.stride(from: 0, to: width, by: 4) {
          sum += Int(start[row * stride + column])
          pixels += 1
        }
      }
      return pixels > 0 ? Double(sum) / Double(pixels) : 0
    }
  }
}
