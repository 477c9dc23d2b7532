// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// A point in the image.
///
/// (0, 0) is the upper left corner, (1, 1) the lower right corner.
public struct PointOfInterest: Hashable, Sendable {
  /// The horizontal position, from 0 (left edge) to 1 (right edge).
  public var x: Double
  /// The vertical position, from 0 (upper edge) to 1 (lower edge).
  public var y: Double

  /// Creates a point from fractions of the image's width and height.
  public init(x: Double, y: Double) {
    self.x = x
    self.y = y
  }

  /// The center of the image, which selects the whole image as a point of interest.
  public static let center = PointOfInterest(x: 0.5, y: 0.5)
}

// USB cameras have only one region of interest, with one bit for each automatic mode that uses it.
// The exposure point and the focus point below are therefore always equal.
extension CameraControls {
  /// A bit of `V4L2_CID_UVC_REGION_OF_INTEREST_AUTO`: an automatic mode that can use the region of
  /// interest.
  private struct Automatic {
    let bit: Int64
    static let exposure = Automatic(bit: ControlBit.regionExposure)
    static let focus = Automatic(bit: ControlBit.regionFocus)
  }

  /// Whether automatic exposure supports a point of interest.
  public var isExposurePointOfInterestSupported: Bool { canLook(.exposure) }

  /// Whether autofocus supports a point of interest.
  public var isFocusPointOfInterestSupported: Bool { canLook(.focus) }

  /// The center of the region that automatic exposure measures, or nil if it measures the whole
  /// image.
  public var exposurePointOfInterest: PointOfInterest? {
    get throws(MediaError) { try point(.exposure) }
  }

  /// The center of the region that autofocus measures, or nil if it measures the whole image.
  public var focusPointOfInterest: PointOfInterest? {
    get throws(MediaError) { try point(.focus) }
  }

  /// Sets the region that automatic exposure measures.
  ///
  /// The region is a quarter of the image's width and height, around the point. The center,
  /// ``PointOfInterest/center``, selects the whole image again. If this program captures from the
  /// camera, the previous region is restored when the stream ends. Otherwise the region stays set.
  ///
  /// Uses `V4L2_CID_UVC_REGION_OF_INTEREST_RECT` and `…_AUTO`, of Linux 6.15 and later. If
  /// autofocus uses the region too, its region changes as well, because the camera has only one.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, or
  ///   `.controlNotSupported`.
  public func setExposurePointOfInterest(_ point: PointOfInterest) throws(MediaError) {
    try look(at: point, .exposure)
  }

  /// Sets the region that autofocus measures, as ``setExposurePointOfInterest(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, or
  ///   `.controlNotSupported`.
  public func setFocusPointOfInterest(_ point: PointOfInterest) throws(MediaError) {
    try look(at: point, .focus)
  }

  private func canLook(_ automatic: Automatic) -> Bool {
    guard camera.has(.regionOfInterest), let control = try? camera.find(.regionOfInterestAutomatics)
    else {
      return false
    }
    return control.maximum & automatic.bit != 0
  }

  private func point(_ automatic: Automatic) throws(MediaError) -> PointOfInterest? {
    guard let control = try camera.find(.regionOfInterest),
      let bits = try camera.number(.regionOfInterestAutomatics), bits & automatic.bit != 0,
      case .rectangle(let region) = try camera.value(control),
      let whole = try wholeRegion(control)
    else { return nil }
    let x = Double(region.left) - Double(whole.left) + Double(region.width) / 2
    let y = Double(region.top) - Double(whole.top) + Double(region.height) / 2
    return PointOfInterest(x: x / Double(whole.width), y: y / Double(whole.height))
  }

  private func look(at point: PointOfInterest, _ automatic: Automatic) throws(MediaError) {
    guard canLook(automatic) else { throw camera.missing("region of interest") }
    guard (0...1).contains(point.x), (0...1).contains(point.y) else {
      throw camera.outOfRange("the point of interest", "(\(point.x), \(point.y))", takes: "0 to 1")
    }
    let control = try camera.require(.regionOfInterest)
    guard let node = camera.ownNode, let whole = try wholeRegion(control) else {
      throw camera.missing("region of interest")
    }
    let automatics = try camera.require(.regionOfInterestAutomatics)
    let bits = try camera.value(automatics).number ?? 0
    guard point != .center else {
      let others = bits & ~automatic.bit
      try node.setDuringCapture(automatics, to: .number(others))
      // All automatic modes share the camera's only region. The region is therefore reset to the
      // whole image only if no other automatic mode uses it.
      if others == 0 { try node.setDuringCapture(control, to: .rectangle(whole)) }
      return
    }
    let (left, width) = Self.part(of: whole.width, from: whole.left, about: point.x)
    let (top, height) = Self.part(of: whole.height, from: whole.top, about: point.y)
    let region = ControlRectangle(left: left, top: top, width: width, height: height)
    try node.setDuringCapture(control, to: .rectangle(region))
    try node.setDuringCapture(automatics, to: .number(bits | automatic.bit))
  }

  /// A range of pixels that spans a quarter of the image's width or height.
  ///
  /// The range is centered on the point, but moved where needed to lie inside the image.
  private static func part(
    of side: UInt32, from start: Int32, about center: Double
  ) -> (start: Int32, length: UInt32) {
    let length = max(side / 4, 1)
    let middle = Double(side) * center
    let offset = (middle - Double(length) / 2).rounded()
    let inside = min(max(offset, 0), Double(side - length))
    return (Int32(clamping: Int64(start) + Int64(saturating: inside)), length)
  }

  /// The region that covers the whole image, or nil if the driver does not report one.
  private func wholeRegion(_ control: DeviceControl) throws(MediaError) -> ControlRectangle? {
    guard let node = camera.ownNode else { return nil }
    // Older kernels do not report the maximum of the region of interest. Its default value is then
    // used, because that is the whole image.
    for kind in [ControlValueKind.maximum, .default] {
      let answer = try? node.use { device throws(CallFailure) in try device.value(of: control, kind)
      }
      if case .rectangle(let whole) = answer, whole.width > 0, whole.height > 0 { return whole }
    }
    return nil
  }
}
