// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

/// Keeps the exposure and the focus of a camera on the largest face, or on a point that was tapped.
///
/// ```swift
/// let follower = PointOfInterestFollower(try CameraControls(device: camera))
/// output.setMetadataObjectsHandler { frame in _ = try? follower.follow(frame) }
/// ```
///
/// A camera without a region of interest is left as it is. The region stays where it is if no face is
/// found any more. ``CameraControls`` restores the earlier one when the stream of this program ends; a
/// tapped point is set again with the first frame of the next stream that is given to ``follow(_:)``. All
/// calls may come from any thread. A call blocks while the driver communicates with the camera, and
/// concurrent calls run one after the other.
public final class PointOfInterestFollower: Sendable {
  /// The motion of a face after which the region follows, in the width or the height of the image.
  static let minimumMotion = 0.1

  private struct State {
    /// The point that this follower set on the camera in this stream.
    var point: PointOfInterest?
    var tapped: PointOfInterest?
    var streamStart: MediaTime?
  }

  private let controls: CameraControls
  private let state = Mutex(State())

  /// Creates a follower, which changes nothing yet.
  ///
  /// - Parameter controls: The controls of the camera whose frames are searched.
  public init(_ controls: CameraControls) { self.controls = controls }

  /// Whether the camera's exposure or its focus can follow.
  public var isSupported: Bool {
    controls.isExposurePointOfInterestSupported || controls.isFocusPointOfInterestSupported
  }

  /// The point that was set last; nil before the first of a stream.
  public var pointOfInterest: PointOfInterest? { state.withLock { $0.point } }

  /// Moves the region to the largest face of a frame, once that moved by a tenth of the image.
  ///
  /// While a tapped point is set, sets only that, in the first frame of a stream. Does nothing without a
  /// face, and without a region.
  ///
  /// - Parameter frame: The objects of a frame. Codes are ignored.
  /// - Returns: Whether the region was set.
  /// - Throws: `MediaError` if the camera refuses the region. If it refuses that of the exposure, the next
  ///   frame is tried again; otherwise the focus stays as it is until the region moves.
  @discardableResult
  public func follow(_ frame: MetadataObjectFrame) throws(MediaError) -> Bool {
    let moved = state.withLock { state in
      Result { () throws(MediaError) in
        if state.streamStart != frame.streamStart {
          // With the end of a stream, the camera got its earlier region again.
          (state.streamStart, state.point) = (frame.streamStart, nil)
        }
        if let tapped = state.tapped {
          return state.point == tapped ? false : try measure(tapped, &state)
        }
        guard let face = frame.objects.first(where: { $0.type == .face }) else { return false }
        let bounds = face.bounds
        let point = PointOfInterest(
          x: min(1, bounds.x + bounds.width / 2), y: min(1, bounds.y + bounds.height / 2))
        return isFar(point, from: state.point) ? try measure(point, &state) : false
      }
    }
    return try moved.get()
  }

  /// Sets the point that was tapped, or follows faces again.
  ///
  /// - Parameter point: The point in the captured frame, such as
  ///   `PreviewGeometry.devicePoint(fromViewPoint:)` gives it; nil to follow faces.
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, which changes
  ///   nothing, or if the camera refuses the region. If it refuses only that of the focus, the exposure
  ///   stays at the point, which ``pointOfInterest`` then says.
  public func setTappedPoint(_ point: PointOfInterest?) throws(MediaError) {
    let done = state.withLock { state in
      Result { () throws(MediaError) in
        guard let point else {
          state.tapped = nil
          return
        }
        defer { if state.point == point { state.tapped = point } }
        _ = try measure(point, &state)
      }
    }
    try done.get()
  }

  private func isFar(_ point: PointOfInterest, from last: PointOfInterest?) -> Bool {
    guard let last else { return true }
    return max(abs(point.x - last.x), abs(point.y - last.y)) > Self.minimumMotion
  }

  /// Sets the region of each that has one, and says whether any has.
  ///
  /// The state has the point as soon as one of them has it.
  private func measure(
    _ point: PointOfInterest, _ state: inout State
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
