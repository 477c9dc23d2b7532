// SPDX-License-Identifier: Apache-2.0

package import OvercrankDeviceDiscovery
package import OvercrankMediaCore

/// A streaming source of audio: a sound card or the audio of the synthetic camera.
///
/// All calls come from one thread.
package protocol AudioDriver: AnyObject, Sendable {
  /// The sample format.
  var format: AudioFormat { get }

  /// Whether the driver waits until its samples are consumed.
  ///
  /// If true, the capture loop waits until every sink has space.
  var waitsForTakers: Bool { get }

  /// Whether a driver that delivers no samples for some seconds has failed.
  ///
  /// False for the audio of a simulated camera, which may begin long after the images.
  var reportsSilence: Bool { get }

  /// The current time on the clock of the driver's timestamps, in nanoseconds.
  func nanoseconds() -> Int64

  /// Starts the stream.
  ///
  /// - Throws: `MediaError` if the device is busy, lost or fails.
  func start() throws(MediaError)

  /// Waits for samples until a timeout, and reads the available samples that fit the memory.
  ///
  /// - Throws: `MediaError` if the device is lost or has failed.
  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading

  /// Stops the stream.
  func stop()
}

extension AudioDriver {
  package var waitsForTakers: Bool { false }
  package var reportsSilence: Bool { true }
}

/// The result of waiting for samples.
package enum AudioReading: Sendable {
  /// The number of samples per channel, and their timestamp.
  case samples(count: Int, SampleStamp)
  /// No samples before the timeout.
  case none
  /// The stream was interrupted and has continued.
  ///
  /// The samples during the interruption are lost.
  case lost(AudioGap.Cause)
}

/// The capture time of a sample.
package struct SampleStamp: Hashable, Sendable {
  /// The index of the sample, counted from the first sample that the same call of `read` returned.
  package var sample: Int
  /// The capture time in nanoseconds of the driver's clock.
  package var nanoseconds: Int64

  package init(sample: Int, nanoseconds: Int64) {
    (self.sample, self.nanoseconds) = (sample, nanoseconds)
  }
}

/// A gap of lost samples between two audio blocks.
public struct AudioGap: Hashable, Sendable {
  /// The reason for a gap.
  public enum Cause: String, Hashable, Sendable, CaseIterable {
    /// The sound card's buffer overflowed because the program did not read it in time.
    case overrun
    /// The system was suspended.
    case suspended
    /// Too many blocks were waiting for the program.
    case outOfBuffers = "out_of_buffers"
  }

  /// The reason for the gap.
  ///
  /// If the gap consists of several losses, this is the reason for the first loss.
  public let cause: Cause
  /// The index of the first sample of this gap, counted from the start of the stream.
  public let position: Int64
  /// The number of lost samples per channel.
  ///
  /// The number is exact for ``Cause/outOfBuffers``. Otherwise it is computed from the timestamps
  /// before and after the gap, and rounded to a whole number.
  public let sampleCount: Int64
}

/// A block of captured samples, passed to the sinks.
package struct AudioBlock {
  /// The index of the first sample since the start of the stream, including lost samples.
  package let position: Int64
  /// The number of samples per channel.
  package let sampleCount: Int
  /// The capture time of the first sample, in nanoseconds of the capture clock.
  package let nanoseconds: Int64
  /// The gap before this block.
  package let gap: AudioGap?
  /// The interleaved samples, valid during the call.
  package let bytes: UnsafeRawBufferPointer
}

/// A receiver of audio blocks on the capture thread.
///
/// All calls come from the capture thread. Implementations must not block or allocate memory.
package protocol AudioBlockSink: AnyObject, Sendable {
  /// Whether the sink has space for the next block.
  ///
  /// Called only for drivers that wait for consumers.
  var hasSpace: Bool { get }

  /// Accepts or ignores a block.
  func take(_ block: AudioBlock)

  /// Ends the sink. The stream is off, and no more audio follows.
  func end()
}

extension AudioBlockSink {
  package var hasSpace: Bool { true }
}
