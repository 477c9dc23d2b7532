// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster
import OvercrankRetiming

/// A reference type around a converter, so that a dictionary can hold it.
private final class Converter {
  private var converter: FrameConverter

  init(_ converter: consuming FrameConverter) { self.converter = converter }

  func convert(_ frame: MediaFrame) throws(CallFailure) -> MediaFrame {
    try converter.convert(frame)
  }
}

/// Converts source frames to the size and format of the encoder.
struct FrameRenderer: ~Copyable {
  private let geometry: FrameGeometry
  private let transfer: TransferFunction
  /// The converters by output size, which differs between sources.
  private var converters: [VideoSize: Converter] = [:]
  private var blender: FrameBlender?
  private var lastBlack: MediaFrame?
  private let flicker: FlickerRemoval?
  private let gain: FrameGain?
  /// The last converted frame, which the next output frame often shows again.
  private var last: (frame: ConstantRatePlan.Frame, image: MediaFrame)?

  init(_ geometry: FrameGeometry, _ colors: Encoder.ColorTags, _ flicker: FlickerRemoval?) {
    self.geometry = geometry
    self.flicker = flicker
    gain = FrameGain(pixelFormat: geometry.format, isFullRange: geometry.isFullRange)
    transfer = TransferFunction(colors)
  }

  /// Returns the converted image of a source frame, or a black image for a gap.
  mutating func paint(
    _ frame: ConstantRatePlan.Frame?, _ image: MediaFrame?
  ) throws -> MediaFrame {
    guard let frame, let image else { return try black() }
    if let last, last.frame == frame { return last.image }
    let placement = geometry.placements[frame.source]
    let converted = try converter(to: placement.scaled).convert(placement.cropped(image))
      .rotated(by: placement.rotation)
    var painted =
      try placement.isInset
      ? converted.centered(on: black())
      : converted.padded(width: geometry.encoded.width, height: geometry.encoded.height)
    if let flicker, let gain {
      painted = try gain.apply(flicker.gain(of: frame), to: painted)
    }
    last = (frame, painted)
    return painted
  }

  private mutating func converter(to size: VideoSize) -> Converter {
    if let known = converters[size] { return known }
    // The converter accepts any input size, because some cameras change the frame size within a
    // track. The output has a single size.
    let made = Converter(
      FrameConverter(
        to: geometry.format, isFullRange: geometry.isFullRange, width: size.width,
        height: size.height))
    converters[size] = made
    return made
  }

  /// Adds an image to the blend, with a weight.
  mutating func mix(_ image: MediaFrame, share: Float) throws {
    let blender = try blender ?? makeBlender()
    self.blender = blender
    try blender.add(image, share: share)
  }

  /// Returns a blender for converted frames.
  func makeBlender() throws(MediaError) -> FrameBlender {
    let blender = FrameBlender(
      width: geometry.encoded.width, height: geometry.encoded.height, pixelFormat: geometry.format,
      isFullRange: geometry.isFullRange, transfer: transfer)
    guard let blender else {
      throw MediaError(
        .unsupportedSource, "frames of format \(geometry.format.name) cannot be blended",
        recovery: Recovery(
          "do not blend frames, or choose H.264", .change(.sampling), .change(.codec)))
    }
    return blender
  }

  /// Returns the blended image of all images added by ``mix(_:share:)``.
  mutating func mixed() throws -> MediaFrame {
    guard let mixed = try blender?.finish() else { return try black() }
    return mixed
  }

  /// Returns an interpolator that synthesizes frames between converted frames.
  func sequence(
    _ settings: RenderSettings, threadCount: Int?
  ) throws(MediaError) -> FrameSequenceInterpolator {
    let interpolator = FrameInterpolator(
      width: geometry.encoded.width, height: geometry.encoded.height, pixelFormat: geometry.format,
      isFast: settings.sampling == .flowFast, threadCount: threadCount ?? Processors.count)
    guard let interpolator else {
      throw MediaError(
        .unsupportedSource,
        "frames of \(geometry.encoded.width)x\(geometry.encoded.height) \(geometry.format.name) "
          + "cannot be synthesized",
        recovery: Recovery(
          "choose another sampling, or H.264 and at least 16x16 pixels", .change(.sampling),
          .change(.codec)))
    }
    return FrameSequenceInterpolator(interpolator, fallback: settings.lowConfidence)
  }

  /// Returns a black image in the size and format of the output.
  private mutating func black() throws -> MediaFrame {
    if let lastBlack { return lastBlack }
    let frame = try MediaFrame.video(
      width: geometry.encoded.width, height: geometry.encoded.height, pixelFormat: .gray8)
    frame.planeData(0)?.update(repeating: 0, count: frame.bytesPerRow(0) * frame.height)
    var converter = FrameConverter(
      to: geometry.format, isFullRange: geometry.isFullRange)
    let black = try converter.convert(frame)
    lastBlack = black
    return black
  }
}
