// SPDX-License-Identifier: Apache-2.0

/// Where frames go from the capture thread.
///
/// All calls come from that thread, so they neither wait nor ask for memory.
package protocol FrameSink: AnyObject, Sendable {
  /// Takes a frame, or leaves it.
  ///
  /// - Returns: Why the capture is to end with this frame, if it is.
  func take(_ frame: inout DequeuedBuffer) -> StopReason?

  /// Whether the sink has room for a frame of so many bytes; asked only for drivers that wait.
  func hasSpace(for byteCount: Int) -> Bool

  /// Learns that no more frames will come: the stream is off.
  func end(_ end: CaptureEnd)

  /// Whether the sink keeps frames beyond the call.
  var keeping: FrameKeeping { get }

  /// Learns how many frames it may keep at a time; from any thread.
  func allow(keeping count: Int)
}

/// Whether a sink keeps the driver's buffers.
package enum FrameKeeping: Sendable {
  /// It copies what it needs.
  case never
  /// It copies beside others that keep frames, since it has use for a buffer but no need of it.
  case whenAlone
  case always
}

extension FrameSink {
  package func hasSpace(for byteCount: Int) -> Bool { true }
  package var keeping: FrameKeeping { .never }
  package func allow(keeping count: Int) {}
}

extension [any FrameSink] {
  /// Shares out how many frames may be kept at a time, evenly among those that are to keep any: who
  /// keeps all it may takes nothing from the others.
  package func share(_ count: Int) {
    let keepers = filter { $0.keeping != .never }
    let needy = keepers.count == 1 ? keepers : keepers.filter { $0.keeping == .always }
    for sink in keepers {
      let mayKeep = needy.contains { $0 === sink }
      sink.allow(keeping: mayKeep ? Swift.max(1, count / needy.count) : 0)
    }
  }
}
