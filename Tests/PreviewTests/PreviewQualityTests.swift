// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import Testing

@testable import OvercrankCapture
@testable import OvercrankPreview

/// The conversion quality of previews and data outputs.
struct PreviewQualityTests {
  @Test(arguments: [1.0, 1.5])
  func `A preview converts pixels fast and a data output accurately`(factor: Double) throws {
    let (width, height) = (64, 48)
    let format = FormatDescription(
      mediaSubType: .pixels(.yuyv422), width: width, height: height)
    let bytes = (0..<width * height * 2).map { (index: Int) -> UInt8 in
      UInt8(16 + index / 2 * 7 % 220)
    }
    let geometry = ConnectionGeometry(nil)
    geometry.change { $0.scaleAndCropFactor = factor }
    let source = PreviewDecoder.Source(
      observation: FrameObservation(sequence: 1, microseconds: 2), exposure: ExposureInForce(),
      format: format, geometry: geometry)
    let work = SampleConverter.Work(
      settings: VideoDataSettings(pixelFormat: .bgra, width: width, height: height),
      factor: factor)
    try bytes.withUnsafeBytes { bytes in
      let shown = try PreviewDecoder().frame(bytes, source, as: .bgra, width, height).get()
      let fast = try SampleConverter(quality: .fast).convert(bytes, format, work).image
      let exact = try SampleConverter().convert(bytes, format, work).image
      #expect(shown.image.bytes == fast.bytes && fast.bytes != exact.bytes)
      #expect(shown.image.width == width && shown.image.height == height)
    }
  }
}
