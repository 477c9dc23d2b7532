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
