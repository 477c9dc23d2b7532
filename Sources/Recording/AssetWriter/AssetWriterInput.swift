// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// An input of an ``AssetWriter``: one track of the file.
///
/// ```swift
/// let voice = try AssetWriterInput(
///   mediaType: .audio, outputSettings: .audio(.aac),
///   sourceFormatHint: .audio(AudioFormat(.s16, sampleRate: 48_000, channelCount: 1)))
/// ```
///
/// All calls may come from any thread. Samples are stored in the order of the calls, so only one
/// thread at a time should append to an input.
public final class AssetWriterInput: Sendable {
  /// The media type of the appended samples.
  public var mediaType: MediaType { sourceFormatHint.mediaType }
  /// The encoding in which the samples are stored.
  ///
  /// Nil stores them unchanged.
  public let outputSettings: AssetWriterOutputSettings?
  /// The format of the appended samples.
  public let sourceFormatHint: SourceFormat
  /// Whether the source delivers samples in real time.
  ///
  /// If true, `append(_:)` copies the sample to a queue and never blocks on the disk or the
  /// encoder. A background thread stores the queue. If the process is killed, the samples in the
  /// queue are lost. If false, each sample is stored before the call returns.
  public let expectsMediaDataInRealTime: Bool

  /// The checked format of the input's samples, and the codec that stores them.
  let source: AssetTrackSource
  private struct Owner {
    weak var writer: AssetWriter?
    var index = 0
  }
  private let owner = Mutex(Owner())

  /// Creates an input.
  ///
  /// - Parameters:
  ///   - mediaType: The kind of the samples.
  ///   - outputSettings: The encoding. Nil stores the samples unchanged. This is supported for
  ///     compressed frames, for compressed audio, and for PCM with 16-bit, 24-bit or floating-point
  ///     samples.
  ///   - sourceFormatHint: The format of the appended samples.
  ///   - expectsMediaDataInRealTime: Whether the source delivers samples in real time.
  /// - Throws: `MediaError` with `.codecRefused` for an unknown format, or a format that does not
  ///   fit the encoding or the media type.
  public init(
    mediaType: MediaType, outputSettings: AssetWriterOutputSettings?,
    sourceFormatHint: SourceFormat, expectsMediaDataInRealTime: Bool = false
  ) throws(MediaError) {
    guard sourceFormatHint.mediaType == mediaType else {
      throw MediaError(
        .codecRefused,
        "an input for \(mediaType.rawValue) cannot take \(sourceFormatHint.mediaType.rawValue)",
        recovery: "give the format of the samples that are appended")
    }
    self.outputSettings = outputSettings
    self.sourceFormatHint = sourceFormatHint
    self.expectsMediaDataInRealTime = expectsMediaDataInRealTime
    source = try AssetTrackSource(sourceFormatHint, outputSettings)
  }

  /// Creates a video input for frames of one format.
  ///
  /// - Parameters:
  ///   - formatDescription: The format of the appended frames.
  ///   - frameRate: The nominal frame rate, which determines the duration of the last frame.
  ///   - video: The encoding of the frames.
  ///   - expectsMediaDataInRealTime: Whether the source delivers frames in real time.
  /// - Throws: `MediaError` with `.codecRefused` for an unknown format, or a format that does not
  ///   fit the encoding.
  public convenience init(
    formatDescription: FormatDescription, frameRate: FrameRate,
    video: VideoOutputSettings = .automatic,
    expectsMediaDataInRealTime: Bool = false
  ) throws(MediaError) {
    try self.init(
      mediaType: .video, outputSettings: .video(video),
      sourceFormatHint: .video(formatDescription, frameRate: frameRate),
      expectsMediaDataInRealTime: expectsMediaDataInRealTime)
  }

  /// Whether a sample may be appended now.
  ///
  /// True if the writer is writing and the input's queue is less than 90 % full. An input also
  /// waits if it does not deliver in real time and is more than 0.25 s ahead of another unfinished
  /// input, so that the file is interleaved.
  public var isReadyForMoreMediaData: Bool {
    let owner = owner.withLock { $0 }
    return owner.writer?.isReady(input: owner.index) ?? false
  }

  /// Appends a captured frame at its presentation time.
  ///
  /// - Throws: As ``append(bytes:at:)`` does.
  public func append(_ sample: SampleBuffer) throws(MediaError) {
    try sample.withBytes { (bytes) throws(MediaError) in
      try append(bytes: bytes, at: sample.presentationTimeStamp)
    }
  }

  /// Appends captured audio at its presentation time.
  ///
  /// - Throws: As ``append(bytes:at:)`` does.
  public func append(_ sample: AudioSampleBuffer) throws(MediaError) {
    try sample.withBytes { (bytes) throws(MediaError) in
      try append(bytes: bytes, at: sample.presentationTimeStamp)
    }
  }

  /// Appends a frame, a block of PCM samples or a packet of compressed audio.
  ///
  /// Times are rounded to microseconds and must increase. Samples before the start of the session
  /// are ignored. PCM samples whose time is within 10 ms of the end of the previous samples follow
  /// them without a gap. A longer gap is filled with silence. If PCM samples overlap the previous
  /// ones by more than 10 ms, the overlapping part is left out.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the sample.
  ///   - time: The presentation time in the source's time.
  /// - Throws: `MediaError` with `.wrongState` if the writer is not writing or the input is
  ///   finished; `.notReady` if the queue is full or the input is too far ahead of another;
  ///   `.invalidData` for a damaged sample, for a time that does not increase, or for a time more
  ///   than 2^31 µs (35 minutes) after the previous sample; or an earlier error of the writer.
  public func append(bytes: UnsafeRawBufferPointer, at time: MediaTime) throws(MediaError) {
    let owner = owner.withLock { $0 }
    guard let writer = owner.writer else {
      throw .wrongState("the input does not belong to a writer")
    }
    try writer.append(bytes, at: time, to: owner.index)
  }

  /// Ends the input, which accepts no more samples; other inputs no longer wait for it.
  ///
  /// Does nothing before the writer has started.
  public func markAsFinished() {
    let owner = owner.withLock { $0 }
    owner.writer?.markAsFinished(input: owner.index)
  }

  /// The nominal frame rate of a video input.
  var frameRate: FrameRate? {
    if case .video(let video) = source { video.frameRate } else { nil }
  }

  /// Sets the index of the track that the input writes.
  func move(to index: Int) { owner.withLock { $0.index = index } }

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

/// Appends images from a buffer pool to a video input.
///
/// ```swift
/// let adaptor = try AssetWriterInputPixelBufferAdaptor(assetWriterInput: input)
/// var image = try adaptor.pixelBufferPool.makePixelBuffer()
/// image.withUnsafeMutableBytes(ofPlane: 0) { $0.initializeMemory(as: UInt8.self, repeating: 128) }
/// try adaptor.append(image, withPresentationTime: .zero)
/// ```
///
/// All calls may come from any thread.
public final class AssetWriterInputPixelBufferAdaptor: Sendable {
  /// The input that receives the images.
  public let assetWriterInput: AssetWriterInput
  /// The pool of images with the input's format and size.
  public let pixelBufferPool: PixelBufferPool

  /// Creates an adaptor for an input of uncompressed frames.
  ///
  /// - Throws: `MediaError` with `.codecRefused` if the input's frames are compressed or have padded
  ///   rows.
  public init(assetWriterInput: AssetWriterInput) throws(MediaError) {
    guard case .video(let format, _, _) = assetWriterInput.sourceFormatHint.content,
      case .pixels(let pixelFormat) = format.mediaSubType, format.bytesPerRow == 0
    else {
      throw MediaError(
        .codecRefused, "the input does not take uncompressed frames with packed rows",
        recovery: "create the input with a pixel format, and 0 bytes per row")
    }
    self.assetWriterInput = assetWriterInput
    pixelBufferPool = try PixelBufferPool(
      format: pixelFormat, width: format.width, height: format.height)
  }

  /// Appends an image, and returns the memory of the image to the pool.
  ///
  /// - Parameters:
  ///   - buffer: An image with the pool's format and size.
  ///   - time: The presentation time in the source's time.
  /// - Throws: `MediaError` with `.invalidData` for an image of another format or size, or as
  ///   ``AssetWriterInput/append(bytes:at:)`` does.
  public func append(
    _ buffer: consuming PixelBuffer, withPresentationTime time: MediaTime
  ) throws(MediaError) {
    let buffer = consume buffer
    defer { pixelBufferPool.recycle(buffer) }
    let pool = pixelBufferPool
    guard buffer.format == pool.format, buffer.width == pool.width, buffer.height == pool.height
    else {
      throw MediaError(
        .invalidData, "an image of \(buffer.width)x\(buffer.height) in \(buffer.format.rawValue)",
        recovery: "append images of the adaptor's pool")
    }
    try buffer.bytes.span.withUnsafeBytes { (bytes) throws(MediaError) in
      try assetWriterInput.append(bytes: bytes, at: time)
    }
  }
}
