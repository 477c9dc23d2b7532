// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

/// The zoom of a camera, and the flips that its driver applies to the image.
///
/// Connections and sinks reference this object and not the camera, because the camera references
/// the sinks.
final class CameraGeometry: Sendable {
  /// A weak reference to the running capture, whose list of sinks must be updated when a sink is
  /// added.
  private struct Running {
    weak var capture: (any GeometryCapture)?
  }

  let zoom = VideoZoomTimeline()
  /// The flips that the driver applies in the current stream, as ``FrameRotation/bits``.
  ///
  /// The flips change only while no stream runs, so they are the same for all frames of a stream.
  let driverFlips = Atomic<UInt8>(0)
  private let running = Mutex(Running())
  private let sink = Mutex<VideoZoomSink?>(nil)
  private struct Ramp {
    /// The number of the most recent zoom ramp, which distinguishes it from older ramps.
    var number = 0
    /// The task that moves the driver's crop, or nil if no ramp is running.
    var task: Task<Void, Never>?
  }
  private let ramp = Mutex(Ramp())

  /// The sink that reports zoom factors, or nil if ``observeZoom()`` was never called.
  var zoomSink: VideoZoomSink? { sink.withLock { $0 } }

  /// The running capture, or nil.
  var capture: (any GeometryCapture)? { running.withLock { $0.capture } }

  func setCapture(_ capture: any GeometryCapture) { running.withLock { $0.capture = capture } }

  /// Returns the sink that reports zoom factors, and adds a newly created sink to the running
  /// capture.
  func observeZoom() throws(MediaError) -> VideoZoomSink {
    let (observed, isNew) = try sink.withLock { (sink) throws(MediaError) in
      if let sink { return (sink, false) }
      let made = try VideoZoomSink(zoom)
      sink = made
      return (made, true)
    }
    if isNew { try capture?.refresh() }
    return observed
  }

  /// Cancels the running ramp and starts a new one.
  ///
  /// - Parameter start: Creates the task of the ramp, which must end with a call of ``endRamp(_:)``
  ///   with the given number.
  func beginRamp(_ start: (_ number: Int) -> Task<Void, Never>) {
    ramp.withLock { ramp in
      ramp.task?.cancel()
      ramp.number += 1
      ramp.task = start(ramp.number)
    }
  }

  /// Clears the task of a ramp that has ended, unless a newer ramp has begun.
  func endRamp(_ number: Int) {
    ramp.withLock { if $0.number == number { $0.task = nil } }
  }

  /// Cancels the running zoom ramp.
  func cancelRamp() {
    ramp.withLock { ramp in
      ramp.task?.cancel()
      ramp.task = nil
    }
  }

  /// Whether a ramp is changing the driver's crop now.
  var isRampingByDriver: Bool { ramp.withLock { $0.task != nil } }

  /// Ends the running ramp and all sequences of zoom factors.
  ///
  /// Called when the input is destroyed.
  func end() {
    cancelRamp()
    zoomSink?.finish()
  }
}

/// The calls that ``CameraGeometry`` makes to a camera's running capture.
protocol GeometryCapture: AnyObject, Sendable {
  /// Passes the current sinks, of the outputs and of the camera itself, to the capture thread.
  func refresh() throws(MediaError)

  /// Switches the camera's image stabilization on or off, as the connections prefer.
  func stabilize()
}
