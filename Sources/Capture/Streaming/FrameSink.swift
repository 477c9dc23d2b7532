// SPDX-License-Identifier: Apache-2.0

/// A receiver of frames on the capture thread.
///
/// Except for `allow(keeping:)`, all calls come from the capture thread. Implementations must not
/// block or allocate memory. After the sink was removed, `end` may come from another thread.
package protocol FrameSink: AnyObject, Sendable {
  /// Accepts or ignores a frame.
  ///
  /// - Returns: The reason to end the capture with this frame, or nil to continue.
  func take(_ frame: inout DequeuedBuffer) -> StopReason?

  /// Whether the sink has space for a frame of this size.
  ///
  /// Called only for drivers that wait for consumers.
  func hasSpace(for byteCount: Int) -> Bool

  /// Ends the sink, because the stream is off or the sink was removed. No more frames follow.
  func end(_ end: CaptureEnd)

  /// Whether the sink may keep a driver's buffer after the call of `take(_:)`, or copies the frame.
  var keeping: FrameKeeping { get }

  /// Sets the number of frames that the sink may hold at a time. May be called from any thread.
  func allow(keeping count: Int)
}

/// A sink's use of the driver's buffers.
package enum FrameKeeping: Sendable {
  /// The sink copies the bytes that it needs.
  case never
  /// The sink holds buffers if all other sinks of the camera have ``never``. Otherwise it copies
  /// the bytes.
  case whenAlone
  case always
}

extension FrameSink {
  package func hasSpace(for byteCount: Int) -> Bool { true }
  package var keeping: FrameKeeping { .never }
  package func allow(keeping count: Int) {}
}

extension [any FrameSink] {
  /// Divides the buffers that may be held among the sinks that hold frames, in equal parts.
  ///
  /// Each sink holds no more than its part, so it cannot use up the buffers of the others.
  package func share(_ count: Int) {
    let keepers = filter { $0.keeping != .never }
    let needy = keepers.count == 1 ? keepers : keepers.filter { $0.keeping == .always }
    for sink in keepers {
      let mayKeep = needy.contains { $0 === sink }
      sink.allow(keeping: mayKeep ? Swift.max(1, count / needy.count) : 0)
    }
  }
}
