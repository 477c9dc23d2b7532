// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
package import OvercrankMediaCore

/// A source of frames that behaves as V4L2 does: buffers are handed out and must be given back.
///
/// One thread dequeues; buffers may be given back from any thread.
package protocol FrameDriver: AnyObject, Sendable {
  /// How many buffers the driver fills in turn.
  var bufferCount: Int { get }

  /// Whether the driver is known to count right, so that times say nothing about losses.
  var countsExactly: Bool { get }
  /// What keeps a camera from lengthening its frames while its stream is on; nil where nothing
  /// would.
  var exposureGuard: ExposureGuard? { get }
  /// Whether the driver waits until its frames are taken: then the capture waits for every taker
  /// too, and none of them loses a frame.
  var waitsForTakers: Bool { get }
  /// Whether the source has no more frames, as a file that was played to its end; known once
  /// ``dequeue(timeoutMilliseconds:)`` has returned nil.
  var hasEnded: Bool { get }
  /// How long the last frame of a source lasts that has ended, in microseconds; nil where the source
  /// does not say, and before its end.
  var lastFrameDuration: Int64? { get }
  /// The clock that the driver's times are of, in microseconds.
  func microseconds() -> Int64

  /// Starts the stream; frames become available from here on.
  ///
  /// - Parameter held: Buffers that are still held, and not to be filled until they are given
  ///   back.
  /// - Throws: `MediaError` when the device is busy, gone or fails.
  func start(keeping held: [Int]) throws(MediaError)

  /// Waits for the next frame, up to a time limit.
  ///
  /// - Returns: The frame, or nil at the time limit and where ``hasEnded`` is true.
  /// - Throws: `MediaError` when the device is gone or has failed.
  func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer?

  /// Gives a buffer back so that the driver can fill it again.
  func requeue(_ index: Int) throws(MediaError)

  /// Ends the stream; buffers that are still held stay readable until the driver goes.
  func stop()

  /// Gives the device up for good, so that another driver may be made for it; the stream is off.
  func release()

  /// Releases the memory and the device, too, after ``release()`` and when no buffer is held.
  func abandon()
}

extension FrameDriver {
  package var countsExactly: Bool { false }
  package var exposureGuard: ExposureGuard? { nil }
  package var waitsForTakers: Bool { false }
  package var hasEnded: Bool { false }
  package var lastFrameDuration: Int64? { nil }
  package func microseconds() -> Int64 { MonotonicClock.microseconds() }
  package func release() {}
  package func abandon() {}
}
