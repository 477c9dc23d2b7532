// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2

/// The region of the image that an automatic mode of a camera measures.
///
/// USB cameras have only one region, with one bit for each automatic mode that uses it. The exposure
/// point and the focus point are therefore always equal.
struct RegionOfInterest {
  private let camera: ControlledCamera
  /// A bit of `V4L2_CID_UVC_REGION_OF_INTEREST_AUTO`: the automatic mode that uses the region.
  private let bit: Int64

  init(_ camera: ControlledCamera, ofMode bit: Int64) { (self.camera, self.bit) = (camera, bit) }

  /// Whether the automatic mode can use the region.
  var isSupported: Bool {
    guard camera.has(ControlID.regionOfInterest) else { return false }
    return ((try? camera.find(.regionOfInterestAutomatics))?.maximum ?? 0) & bit != 0
  }

  /// The center of the region, or nil if the automatic mode measures the whole image.
  var center: Point? {
    get throws(MediaError) {
      guard let control = try camera.find(.regionOfInterest),
        let bits = try camera.number(.regionOfInterestAutomatics), bits & bit != 0,
        case .rectangle(let region) = try camera.value(control),
        let whole = try Self.whole(control, of: camera.ownNode)
      else { return nil }
      let x = Double(region.x) - Double(whole.x) + Double(region.width) / 2
      let y = Double(region.y) - Double(whole.y) + Double(region.height) / 2
      return Point(x: x / Double(whole.width), y: y / Double(whole.height))
    }
  }

  /// Sets the region around a point, or the whole image for the image's center.
  func set(to point: Point) throws(MediaError) {
    guard isSupported else { throw camera.missing("region of interest") }
    guard (0...1).contains(point.x), (0...1).contains(point.y) else {
      throw camera.outOfRange("the point of interest", "(\(point.x), \(point.y))", takes: "0 to 1")
    }
    let control = try camera.require(.regionOfInterest)
    guard let node = camera.ownNode, let whole = try Self.whole(control, of: node) else {
      throw camera.missing("region of interest")
    }
    let automatics = try camera.require(.regionOfInterestAutomatics)
    let bits = try camera.value(automatics).number ?? 0
    guard point != .center else {
      let others = bits & ~bit
      try node.setDuringCapture(automatics, to: .number(others))
      // All automatic modes share the camera's only region. The region is therefore reset to the
      // whole image only if no other automatic mode uses it.
      if others == 0 { try node.setDuringCapture(control, to: .rectangle(whole)) }
      return
    }
    let (left, width) = Self.part(of: whole.width, from: whole.x, about: point.x)
    let (top, height) = Self.part(of: whole.height, from: whole.y, about: point.y)
    let region = PixelRect(x: left, y: top, width: width, height: height)
    try node.setDuringCapture(control, to: .rectangle(region))
    try node.setDuringCapture(automatics, to: .number(bits | bit))
  }

  /// A range of pixels that spans a quarter of the image's width or height.
  ///
  /// The range is centered on the point, but moved where needed to lie inside the image.
  private static func part(
    of side: Int, from start: Int, about center: Double
  ) -> (start: Int, length: Int) {
    let length = max(side / 4, 1)
    let offset = (Double(side) * center - Double(length) / 2).rounded()
    return (start + Int(min(max(offset, 0), Double(side - length))), length)
  }

  /// The region that covers the whole image, or nil if the driver does not report one.
  private static func whole(
    _ control: DeviceControl, of node: ControlledNode?
  ) throws(MediaError) -> PixelRect? {
    // Older kernels do not report the maximum of the region of interest. Its default value is then
    // used, because that is the whole image.
    for kind in [ControlValueKind.maximum, .default] {
      let answer = try? node?.use { device throws(CallFailure) in
        try device.value(of: control, kind)
      }
      if case .rectangle(let whole) = answer, whole.width > 0, whole.height > 0 { return whole }
    }
    return nil
  }
}
