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
  /// Whether every frame can be decoded alone.
  private let isIntraOnly: Bool
  private var headerFinder: FilterBox?
  /// The number of bytes of the length field before each NAL unit.
  ///
  /// Nil for a byte stream with start codes.
  private let unitLengthSize: Int?

  /// Creates a pipeline.
  ///
  /// `headers` are the parameter sets, or empty if they are unknown. In an H.264 byte stream, they
  /// are then found in the first key frame.
  init(codec: VideoCodec, delivery: FrameDelivery, headers: [UInt8] = []) throws(CallFailure) {
    self.codec = codec
    self.delivery = delivery
    let plain = try CodecParameters(
      videoCodec: codec.rawValue, width: delivery.width, height: delivery.height,
      extradata: headers)
    unitLengthSize = codec == .h264 ? plain.unitLengthSize : nil
    isIntraOnly = plain.isIntraOnly
    if codec == .h264, headers.isEmpty {
      // A MOV track header must contain the SPS and PPS. A bitstream filter extracts them from the
      // first key frame.
      headerFinder = FilterBox(try BitstreamFilter(named: "extract_extradata", parameters: plain))
    } else {
      parameters = plain
    }
  }

  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) -> FrameOutcome {
    // A buffer without a NAL unit contains no image, so it counts as corrupt.
    if codec == .h264, unitLengthSize == nil, !AnnexB.holdsUnit(bytes) { return .corrupt }
    let isKeyFrame = isIntraOnly || holdsKeyFrame(bytes)
    if let headerFinder, parameters == nil {
      let packet = try Packet(
        copying: bytes, pts: microseconds, dts: microseconds, duration: 0, isKeyFrame: isKeyFrame)
      let headers = BitstreamFilter.extradata(of: try headerFinder.filter.filter(packet))
      // Frames before the first key frame cannot be decoded, so they are not stored.
      guard isKeyFrame, !headers.isEmpty else { return .unshowable }
      parameters = try CodecParameters(
        videoCodec: codec.rawValue, width: delivery.width, height: delivery.height,
        extradata: headers)
    }
    try store(bytes, VideoSample(time: microseconds, isKeyFrame: isKeyFrame), parameters)
    return .taken
  }

  private func holdsKeyFrame(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let unitLengthSize else { return AnnexB.holdsKeyFrame(bytes) }
    var units = NALUnitReader(bytes, lengthSize: unitLengthSize)
    while let unit = units.next() {
      // Type 5 is a slice of an IDR frame. NAL units with headers may precede it, so all NAL units
      // are searched.
      if bytes[unit.lowerBound] & 0x1F == 5 { return true }
    }
    return false
  }

  private final class FilterBox {
    var filter: BitstreamFilter
    init(_ filter: consuming BitstreamFilter) { self.filter = filter }
  }
}
