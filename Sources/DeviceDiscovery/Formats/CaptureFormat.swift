// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankRaster

/// A mode of a camera: a pixel format, a size, and the frame rates at that size.
///
/// Corresponds to `AVCaptureDevice.Format`. A camera with discrete rates has one format for each
/// rate. A camera with a range of rates has one format for the range. Two formats are equal if they
/// describe the same mode, even if the camera's controls had different ranges when the formats were
/// listed.
public struct CaptureFormat: Hashable, Sendable, Identifiable {
  /// The text that selects the mode, such as `320x180@60/yuyv`.
  ///
  /// Unique within the device.
  ///
  /// The rate in the text is the highest of the format, as a fraction if it is not a whole number.
  public let id: String
  /// The V4L2 code of the pixel format.
  public let fourcc: FourCC
  /// The frame width in pixels.
  public let width: Int
  /// The frame height in pixels.
  public let height: Int
  /// Whether frames are compressed, according to the driver.
  public let isCompressed: Bool
  /// Whether libv4l2 emulates the format by conversion.
  ///
  /// Emulated formats are never selected.
  public let isEmulated: Bool
  /// Whether the size exceeds the incoming signal, so that the driver would upscale.
  ///
  /// Drivers with a scaler list every size that the scaler can produce: vivid lists 16384x8640 for
  /// PAL. Such a mode is selected only if its size is requested. The property is true only for
  /// sizes from a range that are larger than the current digital timings or television standard. If
  /// neither is known, it is true above the pixel rate of 7680x4320 at 60 fps.
  public let exceedsSource: Bool
  /// The frame rates of the format.
  public let frameRateRange: FrameRateRange
  /// The index of the format, from 0, in the driver's list, which is in the driver's order of
  /// preference.
  public let driverOrder: Int
  /// The ranges of the camera's controls.
  let capabilities: FormatCapabilities

  package init(
    fourcc: FourCC, width: Int, height: Int, isCompressed: Bool, isEmulated: Bool = false,
    exceedsSource: Bool = false, frameRateRange: FrameRateRange, driverOrder: Int,
    id: String? = nil, capabilities: FormatCapabilities = FormatCapabilities()
  ) {
    (self.fourcc, self.width, self.height) = (fourcc, width, height)
    (self.isCompressed, self.isEmulated) = (isCompressed, isEmulated)
    (self.exceedsSource, self.frameRateRange) = (exceedsSource, frameRateRange)
    (self.driverOrder, self.capabilities) = (driverOrder, capabilities)
    self.id =
      id
      ?? Self.id(width, height, frameRateRange.maxFrameRate, fourcc.description.lowercased())
  }

  /// The frame rates of the format, as an array with one range.
  public var videoSupportedFrameRateRanges: [FrameRateRange] { [frameRateRange] }
  /// The highest frame rate of the format.
  public var maxFrameRate: FrameRate { frameRateRange.maxFrameRate }
  /// The lowest frame rate of the format.
  public var minFrameRate: FrameRate { frameRateRange.minFrameRate }
  /// The shortest frame duration of the format, in seconds.
  public var minFrameDuration: MediaTime { frameRateRange.minFrameDuration }
  /// The longest frame duration of the format, in seconds.
  public var maxFrameDuration: MediaTime { frameRateRange.maxFrameDuration }
  /// Whether the highest rate is above 30 frames per second.
  public var isHighFrameRate: Bool { maxFrameRate.framesPerSecond > Rational(30) }
  /// The pixel format or codec of the frames, or nil if a movie cannot store them.
  public var mediaSubType: MediaSubType? { known?.mediaSubType }
  /// The color model of the frames, or nil if a movie cannot store them.
  public var colorModel: ColorModel? { known?.colorModel }
  /// Whether a movie can store the frames without conversion.
  public var isStorable: Bool { known != nil }
  /// The corresponding FFmpeg format, if one exists.
  package var known: FourCCFormat? { FourCCFormat(fourcc) }

  /// The same format at a single rate, or nil for an unsupported rate.
  public func narrowed(to rate: FrameRate) -> CaptureFormat? {
    guard frameRateRange.contains(rate) else { return nil }
    guard frameRateRange != FrameRateRange(rate) else { return self }
    return withRange(
      FrameRateRange(rate), id: Self.id(width, height, rate, fourcc.description.lowercased()))
  }

  /// Returns the same format with an id that keeps the case of the pixel format.
  ///
  /// Other ids are in lower case, in which formats such as `pGAA` and `pgAA` would be equal.
  func withExactID() -> CaptureFormat {
    withRange(frameRateRange, id: Self.id(width, height, maxFrameRate, fourcc.description))
  }

  private func withRange(_ range: FrameRateRange, id: String) -> CaptureFormat {
    CaptureFormat(
      fourcc: fourcc, width: width, height: height, isCompressed: isCompressed,
      isEmulated: isEmulated, exceedsSource: exceedsSource, frameRateRange: range,
      driverOrder: driverOrder, id: id, capabilities: capabilities)
  }

  private static func id(
    _ width: Int, _ height: Int, _ rate: FrameRate, _ fourcc: String
  ) -> String {
    let size = VideoSize(width: width, height: height)
    return ModeRequest(size: size, rate: rate, fourcc: fourcc).description
  }

  /// The properties that decide whether two formats are equal.
  private struct Mode: Hashable {
    let id: String
    let fourcc: FourCC
    let size: VideoSize
    let flags: [Bool]
    let range: FrameRateRange
    let order: Int
  }

  private var mode: Mode {
    Mode(
      id: id, fourcc: fourcc, size: VideoSize(width: width, height: height),
      flags: [isCompressed, isEmulated, exceedsSource], range: frameRateRange,
      order: driverOrder)
  }

  /// Whether both formats describe the same mode.
  public static func == (left: CaptureFormat, right: CaptureFormat) -> Bool {
    left.mode == right.mode
  }

  /// Hashes the properties that identify a mode.
  public func hash(into hasher: inout Hasher) { mode.hash(into: &hasher) }
}

extension FrameRate {
  /// The rate in the form that a mode's text contains: `60`, `60000/1001`.
  var modeText: String { denominator == 1 ? "\(numerator)" : "\(numerator)/\(denominator)" }
}
