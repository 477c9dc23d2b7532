// SPDX-License-Identifier: Apache-2.0

public import OvercrankCameraControls
public import OvercrankMediaCore
public import OvercrankRaster
import Synchronization

/// Keeps the exposure and the focus of a camera on the largest face, or on a point that was tapped.
///
/// ```swift
/// let follower = PointOfInterestFollower(try CameraControls(device: camera))
/// output.setMetadataObjectsHandler { frame in _ = try? follower.follow(frame) }
/// ```
///
/// A camera without a region of interest is left unchanged. If no face is found any more, the
/// region stays where it is. When the stream of this program ends, ``CameraControls`` restores the
/// original region. A tapped point is set again when ``follow(_:)`` gets the first frame of the
/// next stream. All calls may come from any thread. A call blocks while the driver communicates
/// with the camera, and concurrent calls run one after the other.
public final class PointOfInterestFollower: Sendable {
  /// The least motion of a face that moves the region, as a fraction of the width or height of the
  /// image.
  static let minimumMotion = 0.1

  private struct State {
    /// The point that this follower set on the camera during the current stream.
    var point: Point?
    var tapped: Point?
    var streamStart: MediaTime?
  }

  private let controls: CameraControls
  private let state = Mutex(State())

  /// Creates a follower, without changing the camera yet.
  ///
  /// - Parameter controls: The controls of the camera whose frames are searched.
  public init(_ controls: CameraControls) { self.controls = controls }

  /// Whether the camera has a region of interest for exposure or focus.
  public var isSupported: Bool {
    controls.isExposurePointOfInterestSupported || controls.isFocusPointOfInterestSupported
  }

  /// The point that was set last in the current stream; nil if none was set.
  public var pointOfInterest: Point? { state.withLock { $0.point } }

  /// Moves the region to the largest face of a frame if the face has moved by a tenth of the image.
  ///
  /// If a tapped point is set, only this point is set, once per stream. Does nothing if the frame
  /// has no face, or the camera has no region.
  ///
  /// - Parameter frame: The objects of a frame. Codes are ignored.
  /// - Returns: Whether the region was moved.
  /// - Throws: `MediaError` if the camera refuses the region. If the camera refuses the region for
  ///   exposure, the next call tries again. If it refuses only the region for focus, the focus is
  ///   unchanged until the region moves again.
  @discardableResult
  public func follow(_ frame: MetadataObjectFrame) throws(MediaError) -> Bool {
    try state.withLock { (state) throws(MediaError) in
      if state.streamStart != frame.streamStart {
        // At the end of a stream, the camera's original region was restored.
        (state.streamStart, state.point) = (frame.streamStart, nil)
      }
      if let tapped = state.tapped {
        return state.point == tapped ? false : try measure(tapped, &state)
      }
      guard let face = frame.objects.first(where: { $0.type == .face }) else { return false }
      let bounds = face.bounds
      let point = Point(
        x: min(1, bounds.x + bounds.width / 2), y: min(1, bounds.y + bounds.height / 2))
      return isFar(point, from: state.point) ? try measure(point, &state) : false
    }
  }

  /// Sets a point that the user tapped, or returns to following faces.
  ///
  /// - Parameter point: The point in the captured frame, as
  ///   `PreviewGeometry.devicePoint(fromViewPoint:)` returns it; nil to follow faces.
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, which changes
  ///   nothing, or if the camera refuses the region. If it refuses only the region for focus, the
  ///   exposure uses the point, and ``pointOfInterest`` returns it.
  public func setTappedPoint(_ point: Point?) throws(MediaError) {
    try state.withLock { (state) throws(MediaError) in
      guard let point else {
        state.tapped = nil
        return
      }
      defer { if state.point == point { state.tapped = point } }
      _ = try measure(point, &state)
    }
  }

  private func isFar(_ point: Point, from last: Point?) -> Bool {
    guard let last else { return true }
    return max(abs(point.x - last.x), abs(point.y - last.y)) > Self.minimumMotion
  }

  /// Sets the regions for exposure and focus, if the camera has them; returns true if the camera
  /// has at least one of the two regions.
  ///
  /// The point is stored in the state as soon as one region is set.
  private func measure(
    _ point: Point, _ state: inout State
  ) throws(MediaError) -> Bool {
    let hasExposure = controls.isExposurePointOfInterestSupported
    if hasExposure {
      try controls.setExposurePointOfInterest(point)
      state.point = point
    }
    let hasFocus = controls.isFocusPointOfInterestSupported
    if hasFocus {
      try controls.setFocusPointOfInterest(point)
      state.point = point
    }
    return hasExposure || hasFocus
  }
}
