// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// An output for a player's audio.
///
/// Samples are numbered from 0 in the order of writing. The player's audio thread waits until
/// samples can be written, renders as many as ``writableCount`` allows and writes them. Any thread
/// may ask for ``timing``.
public protocol AudioSink: AnyObject, Sendable {
  /// Opens the output for a format.
  ///
  /// - Throws: `MediaError` with `.noAudioOutput` if the output does not support the format.
  func open(sampleRate: Int, channelCount: Int) throws(MediaError)

  /// The number of samples per channel that can be written now.
  ///
  /// An output should buffer few samples, because a change of speed is heard only after the
  /// buffered samples.
  var writableCount: Int { get }

  /// Waits until ``writableCount`` is above zero, or until a short time has passed.
  ///
  /// - Throws: `MediaError` if the output has failed.
  func waitUntilWritable() throws(MediaError)

  /// Writes samples, one array per channel.
  ///
  /// - Returns: True if the samples follow the previous ones without a gap, false if the output had
  ///   run out of samples.
  /// - Throws: `MediaError` if the output has failed.
  func write(_ samples: [[Float]]) throws(MediaError) -> Bool

  /// The number of a sample and the host time at which it is heard; nil before the first sample is
  /// heard.
  var timing: AudioSinkTiming? { get }

  /// Stops the output. Samples not yet played are lost.
  func close()
}

/// The number of a sample and the host time at which it is heard.
public struct AudioSinkTiming: Hashable, Sendable {
  /// The number of the sample; a fractional number lies between two samples.
  public let sample: Rational
  /// The host time at which the sample is heard.
  public let hostTime: MediaTime

  /// Creates a pair of a sample number and a host time.
  public init(sample: Rational, hostTime: MediaTime) {
    (self.sample, self.hostTime) = (sample, hostTime)
  }
}
