// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankRaster

/// How an image is placed in a view with another aspect ratio.
///
/// Corresponds to `AVLayerVideoGravity`.
public enum PreviewGravity: String, Hashable, Sendable, CaseIterable {
  /// The whole image is shown, in the middle of the view.
  case resizeAspect
  /// The image fills the view, and two of its sides are cut off.
  case resizeAspectFill
  /// The image is stretched to the view.
  case resize
}

/// The position of a captured image in a view, and the conversion of points between the two.
///
/// Device coordinates belong to the captured frame before it is rotated or mirrored: (0, 0) is its
/// upper left corner, (1, 1) the lower right one. Points of interest and metadata objects use
/// device coordinates. View coordinates are chosen by the caller, such as pixels of a window.
/// Corresponds to the conversion methods of `AVCaptureVideoPreviewLayer`.
public struct PreviewGeometry: Hashable, Sendable {
  /// The width of the captured frame in pixels.
  public var imageWidth: Int
  /// The height of the captured frame in pixels.
  public var imageHeight: Int
  /// The width of the view, in units of the caller such as pixels.
  public var viewWidth: Double
  /// The height of the view, in units of the caller such as pixels.
  public var viewHeight: Double
  /// How the image is placed in the view.
  public var gravity: PreviewGravity
  /// The clockwise rotation of the image in degrees: 0, 90, 180 or 270.
  public let rotationAngle: Int
  /// Whether the image is mirrored left to right, after its rotation.
  public var isMirrored: Bool
  /// The factor by which the middle of the frame is enlarged before it is shown, at least 1.
  public var zoomFactor: Double

  /// Describes an image in a view.
  ///
  /// - Parameters:
  ///   - imageWidth: The width of the captured frame in pixels, above zero.
  ///   - imageHeight: The height of the captured frame in pixels, above zero.
  ///   - viewWidth: The width of the view.
  ///   - viewHeight: The height of the view.
  ///   - gravity: How the image is placed in the view.
  ///   - rotationAngle: The clockwise rotation in degrees, a multiple of 90.
  ///   - isMirrored: Whether the image is mirrored left to right, after its rotation.
  ///   - zoomFactor: The factor by which the middle of the frame is enlarged.
  public init(
    imageWidth: Int, imageHeight: Int, viewWidth: Double, viewHeight: Double,
    gravity: PreviewGravity = .resizeAspect, rotationAngle: Int = 0, isMirrored: Bool = false,
    zoomFactor: Double = 1
  ) {
    precondition(imageWidth > 0 && imageHeight > 0, "an image has at least one pixel")
    precondition(rotationAngle % 90 == 0, "an image is rotated by a multiple of 90 degrees")
    (self.imageWidth, self.imageHeight) = (imageWidth, imageHeight)
    (self.viewWidth, self.viewHeight) = (viewWidth, viewHeight)
    self.gravity = gravity
    self.rotationAngle = (rotationAngle % 360 + 360) % 360
    (self.isMirrored, self.zoomFactor) = (isMirrored, zoomFactor)
  }

  /// Describes the current image of a connection in a view.
  ///
  /// Nil if the connection has no camera.
  init?(
    of connection: CaptureConnection, viewWidth: Double, viewHeight: Double, gravity: PreviewGravity
  ) {
    guard let camera = connection.camera else { return nil }
    self.init(
      imageWidth: camera.delivery.width, imageHeight: camera.delivery.height,
      viewWidth: viewWidth, viewHeight: viewHeight, gravity: gravity,
      rotationAngle: connection.videoRotationAngle, isMirrored: connection.isVideoMirrored,
      zoomFactor: connection.geometry.outputFactor(atMicroseconds: camera.driver.microseconds()))
  }

  /// The rectangle of the image in the view.
  ///
  /// With ``PreviewGravity/resizeAspectFill``, the rectangle extends beyond the view.
  public var imageRect: Rect {
    let isUpright = rotationAngle % 180 == 0
    let (width, height) =
      isUpright
      ? (Double(imageWidth), Double(imageHeight)) : (Double(imageHeight), Double(imageWidth))
    let (x, y) = (viewWidth / width, viewHeight / height)
    let scale: (x: Double, y: Double) =
      switch gravity {
      case .resize: (x, y)
      case .resizeAspect: (min(x, y), min(x, y))
      case .resizeAspectFill: (max(x, y), max(x, y))
      }
    return Rect(
      x: (viewWidth - width * scale.x) / 2, y: (viewHeight - height * scale.y) / 2,
      width: width * scale.x, height: height * scale.y)
  }

  /// Converts a point of the captured frame to a point in the view.
  ///
  /// The result is outside the view if the point is not shown.
  public func viewPoint(fromDevicePoint point: Point) -> Point {
    let (x, y) = (zoomed(point.x), zoomed(point.y))
    var (column, row) =
      switch rotationAngle {
      case 90: (1 - y, x)
      case 180: (1 - x, 1 - y)
      case 270: (y, 1 - x)
      default: (x, y)
      }
    if isMirrored { column = 1 - column }
    let rect = imageRect
    row = rect.y + row * rect.height
    return Point(x: rect.x + column * rect.width, y: row)
  }

  /// Converts a point in the view to a point of the captured frame.
  ///
  /// - Returns: The point. A coordinate is below 0 or above 1 if the point in the view is not on
  ///   the image. Nil if the view has no area.
  public func devicePoint(fromViewPoint point: Point) -> Point? {
    let rect = imageRect
    guard rect.width > 0, rect.height > 0 else { return nil }
    var column = (point.x - rect.x) / rect.width
    let row = (point.y - rect.y) / rect.height
    if isMirrored { column = 1 - column }
    let (x, y) =
      switch rotationAngle {
      case 90: (row, 1 - column)
      case 180: (1 - column, 1 - row)
      case 270: (1 - row, column)
      default: (column, row)
      }
    return Point(x: unzoomed(x), y: unzoomed(y))
  }

  /// Converts a rectangle of the captured frame, such as the bounds of a metadata object, to a
  /// rectangle in the view.
  public func viewRect(fromDeviceRect rect: Rect) -> Rect {
    Rect(
      viewPoint(fromDevicePoint: Point(x: rect.x, y: rect.y)),
      viewPoint(fromDevicePoint: Point(x: rect.x + rect.width, y: rect.y + rect.height)))
  }

  /// Converts a rectangle in the view to a rectangle of the captured frame.
  ///
  /// - Returns: The rectangle, or nil if the view has no area.
  public func deviceRect(fromViewRect rect: Rect) -> Rect? {
    guard let first = devicePoint(fromViewPoint: Point(x: rect.x, y: rect.y)),
      let second = devicePoint(
        fromViewPoint: Point(x: rect.x + rect.width, y: rect.y + rect.height))
    else { return nil }
    return Rect(first, second)
  }

  private func zoomed(_ value: Double) -> Double { (value - 0.5) * zoomFactor + 0.5 }
  private func unzoomed(_ value: Double) -> Double { (value - 0.5) / zoomFactor + 0.5 }
}
