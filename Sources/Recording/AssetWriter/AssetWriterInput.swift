// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// The video input of an ``AssetWriter``.
///
/// All calls may come from any thread. Frames are stored in the order of the calls, so only one
/// thread at a time should append.
public final class AssetWriterInput: Sendable {
  /// The format of the appended frames.
  public let formatDescription: FormatDescription
  /// The nominal frame rate, which determines the duration of the last frame.
  public let frameRate: FrameRate
  /// The encoding of the frames.
  public let video: VideoOutputSettings
  /// Whether the source delivers frames in real time.
  ///
  /// If true, ``append(_:)`` copies the frame to a queue and never blocks on the disk or the
  /// encoder. A background thread stores the queue. If false, each frame is stored before
  /// ``append(_:)`` returns.
  public let expectsMediaDataInRealTime: Bool

  let delivery: FrameDelivery
  private struct Owner {
    weak var writer: AssetWriter?
  }
  private let owner = Mutex(Owner())

  /// Creates an input for frames of one format.
  ///
  /// - Parameters:
  ///   - formatDescription: The format of the appended frames.
  ///   - frameRate: The nominal frame rate.
  ///   - video: The encoding of the frames.
  ///   - expectsMediaDataInRealTime: Whether the source delivers frames in real time.
  /// - Throws: `MediaError` with `.codecRefused` for an unknown format, or a format that does not
  ///   fit the encoding.
  public init(
    formatDescription: FormatDescription, frameRate: FrameRate,
    video: VideoOutputSettings = .automatic,
    expectsMediaDataInRealTime: Bool = false
  ) throws(MediaError) {
    self.formatDescription = formatDescription
    self.frameRate = frameRate
    self.video = video
    self.expectsMediaDataInRealTime = expectsMediaDataInRealTime
    guard [formatDescription.width, formatDescription.height].allSatisfy((1...65_535).contains),
      (0...(1 << 24)).contains(formatDescription.bytesPerRow)
    else {
      throw MediaError(
        .codecRefused,
        "frames of \(formatDescription.width)x\(formatDescription.height) with "
          + "\(formatDescription.bytesPerRow) bytes per row cannot be stored",
        recovery: "use the size of the frames, at most 65535")
    }
    let layout: FrameDelivery.Layout
    switch formatDescription.mediaSubType {
    case .codec(let codec): layout = .compressed(codec)
    case .pixels(let name):
      guard let format = LibAVPixelFormat(name) else {
        throw MediaError(
          .codecRefused, "unknown pixel format \(name.rawValue)",
          recovery: "use an FFmpeg name, such as yuyv422, gray or nv12")
      }
      layout = .raw(format, bytesPerRow: formatDescription.bytesPerRow)
    }
    do throws(LibAVError) {
      delivery = try FrameDelivery(
        layout: layout, width: formatDescription.width, height: formatDescription.height)
    } catch { throw MediaError(recording: error) }
    _ = try VideoPipelinePlan(video, for: delivery)
  }

  /// Whether a frame may be appended now: the writer is writing, and its queue is less than 90 %
  /// full.
  public var isReadyForMoreMediaData: Bool {
    owner.withLock { $0.writer }?.isReady ?? false
  }

  /// Appends a captured frame at its own time.
  ///
  /// - Throws: As ``append(bytes:at:)`` does.
  public func append(_ sample: SampleBuffer) throws(MediaError) {
    try sample.withBytes { (bytes) throws(MediaError) in
      try append(bytes: bytes, at: sample.presentationTimeStamp)
    }
  }

  /// Appends a frame.
  ///
  /// Times are rounded to microseconds and must increase. Frames before the start of the session
  /// are ignored.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the frame.
  ///   - time: The presentation time in the source's time.
  /// - Throws: `MediaError` with `.wrongState` if the writer is not writing, `.notReady` if the
  ///   queue is full, `.invalidData` for a damaged frame, or for a time that is not after the
  ///   previous frame's time or more than 2^31 µs (35 minutes) after it. If an earlier error has
  ///   stopped the writer, that error is thrown.
  public func append(bytes: UnsafeRawBufferPointer, at time: MediaTime) throws(MediaError) {
    guard let writer = owner.withLock({ $0.writer }) else {
      throw .wrongState("the input does not belong to a writer")
    }
    try writer.append(bytes, at: time)
  }

  /// Assigns the input to a writer.
  ///
  /// Returns false if it belongs to another writer.
  func join(_ writer: AssetWriter) -> Bool {
    owner.withLock { owner in
      guard owner.writer == nil else { return false }
      owner.writer = writer
      return true
    }
  }
}
