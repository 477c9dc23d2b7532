// SPDX-License-Identifier: Apache-2.0

/// The audio of a simulated camera, whose samples are computed or decoded on demand.
package protocol KnownAudio: Sendable {
  /// The number of samples per second and channel.
  var sampleRate: Int { get }
  var channelCount: Int { get }

  /// Creates a reader for one consumer.
  func makeReader() -> any KnownAudioReader
}

/// Reads samples of known audio in any order; forward reading is fastest.
///
/// Used by one thread at a time.
package protocol KnownAudioReader: AnyObject {
  /// The index after the last sample; nil while it is unknown, and for endless audio.
  var end: Int64? { get }

  /// Writes samples of all channels, interleaved and with values from -1 to 1, into memory.
  ///
  /// Samples before index 0 and after the end are silence.
  func read(_ count: Int, from start: Int64, into target: UnsafeMutablePointer<Float>)
}

/// The audio of a simulated camera and its timing.
///
/// - `source`: The audio signal.
/// - `epochMicroseconds`: The time of sample 0 on the capture clock. It stays valid after the stream
///   has ended.
/// - `runningEpochMicroseconds`: The same time while the camera streams, and 0 otherwise.
/// - `frameClock`: The clock that follows the delivered frames, or nil if frames are delivered in
///   real time.
package typealias SimulatedAudio = (
  source: any KnownAudio, epochMicroseconds: @Sendable () -> Int64,
  runningEpochMicroseconds: @Sendable () -> Int64, frameClock: FrameClock?
)
