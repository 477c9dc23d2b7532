// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// The time that the conversion of one frame takes.
public struct PixelFormatCost: Hashable, Sendable {
  /// The pixel format of the result.
  public let pixelFormat: PixelFormat
  /// The processor time of one conversion on one thread.
  ///
  /// Several conversions are measured, and this is the shortest.
  public let duration: Duration
}

extension VideoDataOutput {
  /// Measures the conversion of the camera's frames to each available pixel format.
  ///
  /// A test image in the camera's format is converted to the size of ``videoSettings``. Blocks for
  /// six conversions to each format. No frame of the camera is needed.
  ///
  /// - Returns: The formats of ``availablePixelFormats``, the cheapest first.
  /// - Throws: `MediaError` with `.notConvertible` without a camera, or if its frames cannot be
  ///   converted.
  public func measuredPixelFormatCosts() throws(MediaError) -> [PixelFormatCost] {
    try measuredPixelFormatCosts { _ in CaptureStatistics.threadTime() }
  }

  /// Measures the conversions with the clock that a closure reads.
  ///
  /// The closure is called before and after each conversion, and returns the current time of that
  /// clock.
  package func measuredPixelFormatCosts(
    _ time: (PixelFormat) -> Duration
  ) throws(MediaError) -> [PixelFormatCost] {
    guard let format = nativeFormat, format.isConvertible else {
      throw MediaError(
        .notConvertible, "the output has no frames that can be converted",
        recovery: "connect it to a camera with MJPEG or uncompressed images")
    }
    do {
      let frame = try format.testFrame()
      let costs = try availablePixelFormats.map { pixelFormat in
        let converter = SampleConverter()
        var work = SampleConverter.Work()
        work.settings = videoSettings ?? VideoDataSettings()
        work.settings?.pixelFormat = pixelFormat
        let durations = try (0..<6).map { _ in
          let begin = time(pixelFormat)
          let (image, pool) = try frame.withUnsafeBytes {
            try converter.convert($0, format, work)
          }
          pool.recycle(image)
          return time(pixelFormat) - begin
        }
        return PixelFormatCost(pixelFormat: pixelFormat, duration: durations.min() ?? .zero)
      }
      return costs.sorted { $0.duration < $1.duration }
    } catch {
      throw MediaError(
        .notConvertible, "could not convert a test image: \(error)",
        recovery: "choose another format of the camera")
    }
  }
}

extension FormatDescription {
  /// The bytes of a test image in this format.
  fileprivate func testFrame() throws -> [UInt8] {
    switch mediaSubType {
    case .codec:
      var generator = try JPEGTestPatternGenerator(
        pattern: TestPattern(width: width, height: height))
      var bytes = [UInt8](repeating: 0, count: generator.maximumByteCount)
      let count = try bytes.withUnsafeMutableBytes {
        try generator.make(number: 1, isFlash: false, into: $0)
      }
      return Array(bytes.prefix(count))
    case .pixels(let format):
      let count = try MediaFrame.byteCount(
        width: width, height: height, pixelFormat: LibAVPixelFormat(finding: format),
        bytesPerRow: bytesPerRow)
      return (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8) }
    }
  }
}
