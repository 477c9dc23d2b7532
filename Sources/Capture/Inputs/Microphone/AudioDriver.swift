// SPDX-License-Identifier: Apache-2.0

package import OvercrankDeviceDiscovery
package import OvercrankMediaCore

/// A source of sound that streams: a sound card, or the synthetic camera's ear.
///
/// All calls come from one thread.
package protocol AudioDriver: AnyObject, Sendable {
  /// How the samples are given.
  var format: AudioFormat { get }

  /// Whether the driver waits until its samples are taken: then the capture waits for every taker
  /// too.
  var waitsForTakers: Bool { get }

  /// The clock that stamps are of, in nanoseconds.
  func nanoseconds() -> Int64

  /// Starts the stream.
  ///
  /// - Throws: `MediaError` when the device is busy, gone or fails.
  func start() throws(MediaError)

  /// Waits for samples, up to a time limit, and takes as many as there are and find room.
  ///
  /// - Throws: `MediaError` when the device is gone or has failed.
  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading

  /// Ends the stream.
  func stop()
}

extension AudioDriver {
  package var waitsForTakers: Bool { false }
}

/// What came of waiting for samples.
package enum AudioReading: Sendable {
  /// So many samples of each channel, and the stamp that came with them.
  case samples(count: Int, SampleStamp)
  /// None within the time limit.
  case none
  /// The stream broke off and goes on; samples are missing in between.
  case lost(AudioGap.Cause)
}

/// When a sample was heard.
package struct SampleStamp: Hashable, Sendable {
  /// Which sample it is about, counted from the first of those that it came with.
  package var sample: Int
  /// When it was heard, in nanoseconds of the driver's clock.
  package var nanoseconds: Int64

  package init(sample: Int, nanoseconds: Int64) {
    self.sample = sample
    self.nanoseconds = nanoseconds
  }
}

/// Samples that are missing between two blocks.
public struct AudioGap: Hashable, Sendable {
  /// Why they are missing.
  public enum Cause: String, Hashable, Sendable, CaseIterable {
    /// The card's buffer ran over: this program did not come to read it in time.
    case overrun
    /// The machine slept.
    case suspended
    /// Too many blocks waited for whoever takes them.
    case outOfBuffers = "out_of_buffers"
  }

  /// Why the first of them is missing.
  public let cause: Cause
  /// The number of the first sample that is missing.
  public let position: Int64
  /// How many are missing: counted where this program let them go, else the nearest whole number
  /// by the time stamps before and after.
  public let sampleCount: Int64
}

/// Samples that have just arrived, on their way past the sinks.
package struct AudioBlock {
  /// The number of the first sample since the stream began, those that are missing counted.
  package let position: Int64
  /// Samples of each channel.
  package let sampleCount: Int
  /// When the first sample was heard, in nanoseconds of the capture clock.
  package let nanoseconds: Int64
  /// What is missing before it.
  package let gap: AudioGap?
  /// The samples, interleaved; valid during the call.
  package let bytes: UnsafeRawBufferPointer
}

/// Where sound goes from its capture thread.
///
/// All calls come from that thread, so they neither wait nor ask for memory.
package protocol AudioSink: AnyObject, Sendable {
  /// Whether the sink has room for the next block; asked only for drivers that wait.
  var hasSpace: Bool { get }

  /// Takes a block, or leaves it.
  func take(_ block: AudioBlock)

  /// Learns that no more sound will come: the stream is off.
  func end()
}

extension AudioSink {
  package var hasSpace: Bool { true }
}
