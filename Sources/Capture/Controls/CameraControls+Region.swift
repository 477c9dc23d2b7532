// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// A place in the picture: (0, 0) is its upper left corner, (1, 1) its lower right.
public struct PointOfInterest: Hashable, Sendable {
  /// From the left edge, 0, to the right, 1.
  public var x: Double
  /// From the upper edge, 0, to the lower, 1.
  public var y: Double

  /// Makes a place in the picture.
  public init(x: Double, y: Double) {
    self.x = x
    self.y = y
  }
}

// USB cameras have one region, and bits that tell which automatics look at it; so the two points
// below are one and the same place.
extension CameraControls {
  /// An automatic that may look at the region: a bit of `V4L2_CID_UVC_REGION_OF_INTEREST_AUTO`.
  private struct Automatic {
    let bit: Int64
    static let exposure = Automatic(bit: ControlBit.regionExposure)
    static let focus = Automatic(bit: ControlBit.regionFocus)
  }

  /// Whether exposure can be told where to look.
  public var isExposurePointOfInterestSupported: Bool { canLook(.exposure) }

  /// Whether focus can be told where to look.
  public var isFocusPointOfInterestSupported: Bool { canLook(.focus) }

  /// Where exposure looks: the middle of the camera's region; nil where it looks at everything.
  public var exposurePointOfInterest: PointOfInterest? {
    get throws(MediaError) { try point(.exposure) }
  }

  /// Where focus looks: the middle of the camera's region; nil where it looks at everything.
  public var focusPointOfInterest: PointOfInterest? {
    get throws(MediaError) { try point(.focus) }
  }

  /// Tells exposure where to look: a quarter of the picture's width and height about the point.
  ///
  /// The corresponding controls are `V4L2_CID_UVC_REGION_OF_INTEREST_RECT` and `…_AUTO`, of Linux
  /// 6.15 and later. Focus shares the region where it looks at one.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` outside the picture,
  ///   `.controlNotSupported`.
  public func setExposurePointOfInterest(_ point: PointOfInterest) throws(MediaError) {
    try look(at: point, .exposure)
  }

  /// Tells focus where to look, as ``setExposurePointOfInterest(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` outside the picture,
  ///   `.controlNotSupported`.
  public func setFocusPointOfInterest(_ point: PointOfInterest) throws(MediaError) {
    try look(at: point, .focus)
  }

  private func canLook(_ automatic: Automatic) -> Bool {
    guard has(.regionOfInterest), let control = try? find(.regionOfInterestAutomatics) else {
      return false
    }
    return control.maximum & automatic.bit != 0
  }

  private func point(_ automatic: Automatic) throws(MediaError) -> PointOfInterest? {
    guard let control = try find(.regionOfInterest),
      let bits = try number(.regionOfInterestAutomatics), bits & automatic.bit != 0,
      case .rectangle(let region) = try value(control),
      let whole = try wholeRegion(control)
    else { return nil }
    let x = Double(region.left) - Double(whole.left) + Double(region.width) / 2
    let y = Double(region.top) - Double(whole.top) + Double(region.height) / 2
    return PointOfInterest(x: x / Double(whole.width), y: y / Double(whole.height))
  }

  private func look(at point: PointOfInterest, _ automatic: Automatic) throws(MediaError) {
    guard canLook(automatic) else { throw missing("region of interest") }
    guard (0...1).contains(point.x), (0...1).contains(point.y) else {
      throw outOfRange("the point of interest", "(\(point.x), \(point.y))", takes: "0 to 1")
    }
    let control = try require(.regionOfInterest)
    guard let node, let whole = try wholeRegion(control) else {
      throw missing("region of interest")
    }
    let (left, width) = Self.part(of: whole.width, from: whole.left, about: point.x)
    let (top, height) = Self.part(of: whole.height, from: whole.top, about: point.y)
    let region = ControlRectangle(left: left, top: top, width: width, height: height)
    _ = try node.use { device throws(DeviceError) in
      try device.set(control, to: .rectangle(region))
    }
    let bits = try number(.regionOfInterestAutomatics) ?? 0
    try set(.regionOfInterestAutomatics, bits | automatic.bit)
  }

  /// A quarter of a side, about a place on it, and within it.
  private static func part(
    of side: UInt32, from start: Int32, about center: Double
  ) -> (start: Int32, length: UInt32) {
    let length = max(side / 4, 1)
    let middle = Double(side) * center
    let offset = (middle - Double(length) / 2).rounded()
    let inside = min(max(offset, 0), Double(side - length))
    return (Int32(clamping: Int64(start) + Int64(saturating: inside)), length)
  }

  /// All that the camera sees, in the unit of the region; nil where it says nothing sensible.
  private func wholeRegion(_ control: DeviceControl) throws(MediaError) -> ControlRectangle? {
    guard let node else { return nil }
    // Kernels that have the control, but not the question for its greatest value, have the
    // default, which is everything.
    for kind in [ControlValueKind.maximum, .default] {
      let answer = try? node.use { device throws(DeviceError) in try device.value(of: control, kind)
      }
      if case .rectangle(let whole) = answer, whole.width > 0, whole.height > 0 { return whole }
    }
    return nil
  }
}
