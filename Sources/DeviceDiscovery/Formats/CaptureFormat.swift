// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A mode of a camera: a pixel format, a size, and the frame rates it has at that size.
///
/// The counterpart of `AVCaptureDevice.Format`. A camera that lists single rates has one
/// format for each; one that gives a range of rates has one format for the range.
public struct CaptureFormat: Hashable, Sendable, Identifiable {
  /// The mode as it is written to choose it, `320x180@60/yuyv`; unique within its device.
  ///
  /// The rate is the highest of the format, as a fraction where it is not whole.
  public let id: String
  /// The camera's name of the pixel format.
  public let fourcc: FourCC
  /// Pixels per line.
  public let width: Int
  /// Lines.
  public let height: Int
  /// Whether frames vary in size and must be decoded, as the driver says.
  public let isCompressed: Bool
  /// Whether a library makes the format from another one; it is then never chosen.
  public let isEmulated: Bool
  /// Whether the driver would enlarge what comes in, or claims more than any cable carries.
  ///
  /// Drivers that scale give the sizes that their scaler can make, whatever the picture: vivid
  /// lists 16384x8640 for PAL. Such a mode is never chosen unless its size is asked for. It is
  /// one of a range of sizes, and wider or higher than the digital timings or the television
  /// standard in force; where neither is known, more than 7680x4320 pixels 60 times a second.
  public let exceedsSource: Bool
  /// The frame rates of the format.
  public let frameRateRange: FrameRateRange
  /// The place in the driver's list, from 0, which is its order of preference.
  public let driverOrder: Int

  package init(
    fourcc: FourCC, width: Int, height: Int, isCompressed: Bool, isEmulated: Bool = false,
    exceedsSource: Bool = false, frameRateRange: FrameRateRange, driverOrder: Int,
    id: String? = nil
  ) {
    self.fourcc = fourcc
    self.width = width
    self.height = height
    self.isCompressed = isCompressed
    self.isEmulated = isEmulated
    self.exceedsSource = exceedsSource
    self.frameRateRange = frameRateRange
    self.driverOrder = driverOrder
    self.id =
      id
      ?? Self.id(width, height, frameRateRange.maxFrameRate, fourcc.description.lowercased())
  }

  /// The frame rates of the format, as a list of the one range.
  public var videoSupportedFrameRateRanges: [FrameRateRange] { [frameRateRange] }
  /// The highest rate.
  public var maxFrameRate: FrameRate { frameRateRange.maxFrameRate }
  /// The lowest rate.
  public var minFrameRate: FrameRate { frameRateRange.minFrameRate }
  /// The shortest time from one frame to the next, in seconds.
  public var minFrameDuration: MediaTime { frameRateRange.minFrameDuration }
  /// The longest time from one frame to the next, in seconds.
  public var maxFrameDuration: MediaTime { frameRateRange.maxFrameDuration }
  /// Whether the highest rate is above 30 frames per second.
  public var isHighFrameRate: Bool { maxFrameRate.framesPerSecond > Rational(30) }
  /// What the bytes are, or nil where they cannot be stored.
  public var mediaSubType: MediaSubType? { known?.mediaSubType }
  /// What the format shows, or nil where it cannot be stored.
  public var colorModel: ColorModel? { known?.colorModel }
  /// Whether frames can be stored without conversion.
  public var isStorable: Bool { known != nil }
  /// The format as FFmpeg knows it, if it does.
  package var known: FourCCFormat? { FourCCFormat(fourcc) }

  /// The same format at one of its rates, or nil for a rate it does not have.
  public func narrowed(to rate: FrameRate) -> CaptureFormat? {
    guard frameRateRange.contains(rate) else { return nil }
    guard frameRateRange != FrameRateRange(rate) else { return self }
    return withRange(
      FrameRateRange(rate), id: Self.id(width, height, rate, fourcc.description.lowercased()))
  }

  /// The same format under the id that tells large letters from small.
  func withExactID() -> CaptureFormat {
    withRange(frameRateRange, id: Self.id(width, height, maxFrameRate, fourcc.description))
  }

  private func withRange(_ range: FrameRateRange, id: String) -> CaptureFormat {
    CaptureFormat(
      fourcc: fourcc, width: width, height: height, isCompressed: isCompressed,
      isEmulated: isEmulated, exceedsSource: exceedsSource, frameRateRange: range,
      driverOrder: driverOrder, id: id)
  }

  private static func id(
    _ width: Int, _ height: Int, _ rate: FrameRate, _ fourcc: String
  ) -> String {
    let size = ModeRequest.Size(width: width, height: height)
    return ModeRequest(size: size, rate: rate, fourcc: fourcc).description
  }
}

extension FrameRate {
  /// The rate as modes write it: `60`, `60000/1001`.
  var modeText: String { denominator == 1 ? "\(numerator)" : "\(numerator)/\(denominator)" }
}
