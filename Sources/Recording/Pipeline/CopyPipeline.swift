// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Stores the camera's compressed frames unchanged.
struct CopyPipeline: VideoPipeline {
  private(set) var parameters: CodecParameters?
  private let codec: VideoCodec
  private let delivery: FrameDelivery
  private var headerFinder: FilterBox?

  init(codec: VideoCodec, delivery: FrameDelivery) throws(LibAVError) {
    self.codec = codec
    self.delivery = delivery
    let plain = try CodecParameters(
      videoCodec: codec.rawValue, width: delivery.width, height: delivery.height)
    if codec == .h264 {
      // A MOV track header must contain the SPS and PPS. A bitstream filter extracts them from the
      // first key frame.
      headerFinder = FilterBox(try BitstreamFilter(named: "extract_extradata", parameters: plain))
    } else {
      parameters = plain
    }
  }

  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) -> FrameOutcome {
    // A buffer without a NAL unit contains no image, so it counts as corrupt.
    if codec == .h264, !AnnexB.holdsUnit(bytes) { return .corrupt }
    let isKeyFrame = codec == .mjpeg || AnnexB.holdsKeyFrame(bytes)
    if let headerFinder, parameters == nil {
      let packet = try Packet(
        copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: isKeyFrame)
      let headers = BitstreamFilter.extradata(of: try headerFinder.filter.filter(packet))
      // Frames before the first key frame cannot be decoded.
      guard isKeyFrame, !headers.isEmpty else { return .unshowable }
      parameters = try CodecParameters(
        videoCodec: codec.rawValue, width: delivery.width, height: delivery.height,
        extradata: headers)
    }
    try store(bytes, microseconds, isKeyFrame, parameters)
    return .taken
  }

  private final class FilterBox {
    var filter: BitstreamFilter
    init(_ filter: consuming BitstreamFilter) { self.filter = filter }
  }
}
