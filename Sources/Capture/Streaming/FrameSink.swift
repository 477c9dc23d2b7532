// SPDX-License-Identifier: Apache-2.0

/// A receiver of frames from the capture thread.
///
/// Except for `allow(keeping:)`, all calls come from the capture thread. Implementations must not
/// block or allocate memory. `end` may come from another thread after the sink was removed.
package protocol FrameSink: AnyObject, Sendable {
  /// Accepts or ignores a frame.
  ///
  /// - Returns: The reason to end the capture with this frame, or nil to continue.
  func take(_ frame: inout DequeuedBuffer) -> StopReason?

  /// Whether the sink has space for a frame of this size.
  ///
  /// Called only for drivers that wait for consumers.
  func hasSpace(for byteCount: Int) -> Bool

  /// Ends the sink.
  ///
  /// The stream is off, or the sink was removed. No more frames will come.
  func end(_ end: CaptureEnd)

  /// Whether the sink keeps frames after the call.
  var keeping: FrameKeeping { get }

  /// Sets how many frames the sink may hold at a time.
  ///
  /// May be called from any thread.
  func allow(keeping count: Int)
}

/// A sink's use of the driver's buffers.
package enum FrameKeeping: Sendable {
  /// The sink copies the bytes that it needs.
  case never
  /// The sink keeps buffers only if no other sink does, and copies otherwise.
  case whenAlone
  case always
}

extension FrameSink {
  package func hasSpace(for byteCount: Int) -> Bool { true }
  package var keeping: FrameKeeping { .never }
  package func allow(keeping count: Int) {}
}

extension [any FrameSink] {
  /// Divides the buffers that may be held evenly among the sinks that keep frames.
  ///
  /// A sink that holds its whole share takes nothing from the others.
  package func share(_ count: Int) {
    let keepers = filter { $0.keeping != .never }
    let needy = keepers.count == 1 ? keepers : keepers.filter { $0.keeping == .always }
    for sink in keepers {
      let mayKeep = needy.contains { $0 === sink }
      sink.allow(keeping: mayKeep ? Swift.max(1, count / needy.count) : 0)
    }
  }
}
