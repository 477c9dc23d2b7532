// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// Pictures on their way into the file of an ``AssetWriter``.
///
/// All calls may come from any thread. Pictures are stored in the order in which they are appended,
/// so one thread at a time should do so.
public final class AssetWriterInput: Sendable {
  /// What the bytes of each picture are.
  public let formatDescription: FormatDescription
  /// How many pictures a second there are to be; the last one is shown for so long.
  public let frameRate: FrameRate
  /// How they are stored.
  public let video: VideoOutputSettings
  /// Whether pictures come from a source that does not wait.
  ///
  /// They are then copied and stored by a thread of its own, and ``append(_:)`` never waits for the
  /// disk or the encoder; otherwise each is stored before ``append(_:)`` returns.
  public let expectsMediaDataInRealTime: Bool

  let delivery: FrameDelivery
  private struct Owner {
    weak var writer: AssetWriter?
  }
  private let owner = Mutex(Owner())

  /// Describes pictures that are to be stored.
  ///
  /// - Parameters:
  ///   - formatDescription: What the bytes of each picture are.
  ///   - frameRate: How many a second there are to be.
  ///   - video: How they are stored.
  ///   - expectsMediaDataInRealTime: Whether they come from a source that does not wait.
  /// - Throws: `MediaError` with `.codecRefused` for pictures of an unknown format, or ones
  ///   that they cannot be stored so.
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
        "pictures of \(formatDescription.width)x\(formatDescription.height) with "
          + "\(formatDescription.bytesPerRow) bytes from row to row cannot be stored",
        recovery: "give their true size, 65535 at most")
    }
    let layout: FrameDelivery.Layout
    switch formatDescription.mediaSubType {
    case .codec(let codec): layout = .compressed(codec)
    case .pixels(let name):
      guard let format = LibAVPixelFormat(name) else {
        throw MediaError(
          .codecRefused, "there is no pixel format \(name.rawValue)",
          recovery: "name one as FFmpeg does: yuyv422, gray, nv12")
      }
      layout = .raw(format, bytesPerRow: formatDescription.bytesPerRow)
    }
    do throws(LibAVError) {
      delivery = try FrameDelivery(
        layout: layout, width: formatDescription.width, height: formatDescription.height)
    } catch { throw MediaError(recording: error) }
    _ = try VideoPipelinePlan(video, for: delivery)
  }

  /// Whether a picture may be appended now: the writer writes, and its queue has room to spare.
  public var isReadyForMoreMediaData: Bool {
    owner.withLock { $0.writer }?.isReady ?? false
  }

  /// Stores a captured picture at its own time.
  ///
  /// - Throws: As ``append(bytes:at:)``.
  public func append(_ sample: SampleBuffer) throws(MediaError) {
    try sample.withBytes { (bytes) throws(MediaError) in
      try append(bytes: bytes, at: sample.presentationTimeStamp)
    }
  }

  /// Stores a picture.
  ///
  /// Times are kept to the nearest microsecond, and rise. Pictures before the start of the session
  /// are left out.
  ///
  /// - Parameters:
  ///   - bytes: The picture.
  ///   - time: When it is shown, in the source's time.
  /// - Throws: `MediaError` with `.wrongState` for an input whose writer does not write,
  ///   `.notReady` where the queue is full, `.invalidData` for a damaged picture or a time that
  ///   does not rise, or what became of the file.
  public func append(bytes: UnsafeRawBufferPointer, at time: MediaTime) throws(MediaError) {
    guard let writer = owner.withLock({ $0.writer }) else {
      throw .wrongState("the input is no part of a writer")
    }
    try writer.append(bytes, at: time)
  }

  /// Says whose input it is; false where it is another's.
  func join(_ writer: AssetWriter) -> Bool {
    owner.withLock { owner in
      guard owner.writer == nil else { return false }
      owner.writer = writer
      return true
    }
  }
}
