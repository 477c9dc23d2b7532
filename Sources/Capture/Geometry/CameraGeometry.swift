// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

/// The zoom of a camera, and how its driver has flipped the image.
///
/// Connections and sinks reference this object instead of the camera, whose sinks they are.
final class CameraGeometry: Sendable {
  /// A weak reference to the running capture, whose sinks must be refreshed when one is added.
  private struct Running {
    weak var capture: (any GeometryCapture)?
  }

  let zoom = VideoZoomTimeline()
  /// The flips by the driver in the present stream, as ``FrameRotation/bits``.
  ///
  /// They change only while no stream runs, so no frame is turned wrongly.
  let driverFlips = Atomic<UInt8>(0)
  private let running = Mutex(Running())
  private let sink = Mutex<VideoZoomSink?>(nil)
  private struct Ramp {
    /// The number of the last ramp, which identifies it.
    var number = 0
    /// The task that moves the driver's crop, or nil if no ramp is running.
    var task: Task<Void, Never>?
  }
  private let ramp = Mutex(Ramp())

  /// The sink of the zoom factors, or nil if no program has asked for them.
  var zoomSink: VideoZoomSink? { sink.withLock { $0 } }

  /// The running capture, or nil.
  var capture: (any GeometryCapture)? { running.withLock { $0.capture } }

  func setCapture(_ capture: any GeometryCapture) { running.withLock { $0.capture = capture } }

  /// Returns the sink of the zoom factors, and adds it to the running capture if it is new.
  func observeZoom() throws(MediaError) -> VideoZoomSink {
    let (result, isNew) = sink.withLock { sink in
      if let sink { return (Result<VideoZoomSink, MediaError>.success(sink), false) }
      let result = Result { () throws(MediaError) in try VideoZoomSink(zoom) }
      sink = try? result.get()
      return (result, true)
    }
    if isNew { try capture?.refresh() }
    return try result.get()
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

  /// Forgets a ramp that has ended, unless a newer one has begun.
  func endRamp(_ number: Int) {
    ramp.withLock { if $0.number == number { $0.task = nil } }
  }

  /// Cancels the task of a ramp.
  func cancelRamp() {
    ramp.withLock { ramp in
      ramp.task?.cancel()
      ramp.task = nil
    }
  }

  /// Whether the driver's crop is being moved.
  var isRampingByDriver: Bool { ramp.withLock { $0.task != nil } }

  /// Ends the ramp and the streams of factors.
  ///
  /// Called when the input is destroyed.
  func end() {
    cancelRamp()
    zoomSink?.finish()
  }
}

/// A running capture of a camera, as its geometry sees it.
protocol GeometryCapture: AnyObject, Sendable {
  /// Gives the capture thread the sinks that the outputs and the camera now have.
  func refresh() throws(MediaError)

  /// Sets the stabilization that the connections prefer.
  func stabilize()
}
