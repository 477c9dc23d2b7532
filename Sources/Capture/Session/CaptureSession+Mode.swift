// SPDX-License-Identifier: Apache-2.0

package import OvercrankDeviceDiscovery
package import OvercrankMediaCore
import Synchronization

extension CaptureSession {
  /// Restarts a running camera in another mode.
  ///
  /// Blocks. The outputs get new sinks. A running take ends with the stop reason `reconfigured`,
  /// unless it is set to wait for a camera that stops.
  ///
  /// - Parameters:
  ///   - input: A camera of the session.
  ///   - format: The mode.
  ///   - frameRate: The frame rate, or nil for the highest of the mode.
  ///   - evenIfStopped: Whether a camera of a session that does not run is set to the mode too.
  /// - Throws: `MediaError` with `.notConnected` if the session is not running, or as
  ///   ``DeviceInput/init(device:format:)`` does. The camera is then stopped.
  package func restart(
    _ input: DeviceInput, as format: CaptureFormat, frameRate: FrameRate? = nil,
    evenIfStopped: Bool = false
  ) throws(MediaError) {
    let result = core.work.withLock { _ in
      Result { () throws(MediaError) in
        let (graph, isWanted, running) = core.state.withLock { state in
          (state.graph, state.isWanted, state.runningNow.filter { $0.input === input })
        }
        guard isWanted || evenIfStopped else {
          throw MediaError(
            .notConnected, "the session of \(input.device.address) is not running",
            recovery: "start the session first")
        }
        beginChange()
        defer { endChange() }
        for entry in running {
          entry.control.stop(.reconfigured)
          entry.capture.waitUntilEnded()
        }
        try input.open(as: format, frameRate: frameRate)
        if isWanted { try start(input, in: graph) }
      }
    }
    try result.get()
  }
}
