// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// What the bytes of a sample are.
public struct FormatDescription: Hashable, Sendable {
  /// What the bytes are.
  public let mediaSubType: MediaSubType
  /// Pixels from left to right.
  public let width: Int
  /// Pixels from top to bottom.
  public let height: Int
  /// Bytes from row to row of the first plane; 0 where rows are packed or the picture compressed.
  public let bytesPerRow: Int

  /// Describes pictures.
  ///
  /// - Parameters:
  ///   - mediaSubType: What their bytes are.
  ///   - width: Pixels from left to right.
  ///   - height: Pixels from top to bottom.
  ///   - bytesPerRow: Bytes from row to row of the first plane; 0 where rows are packed or the
  ///     pictures compressed.
  public init(mediaSubType: MediaSubType, width: Int, height: Int, bytesPerRow: Int = 0) {
    self.mediaSubType = mediaSubType
    self.width = width
    self.height = height
    self.bytesPerRow = bytesPerRow
  }
}

/// A captured picture with its time, in the camera's own buffer as long as nobody changes it.
///
/// The buffer goes back to the camera with the last reference: keep a few, not many, or the
/// output drops frames with ``FrameDropReason/outOfBuffers``.
///
/// All calls may come from any thread, and several at once: what is read never changes, and each
/// conversion at a time has a converter of its own.
public final class SampleBuffer: Sendable {
  private enum Storage {
    case held(BufferPool.HeldBuffer)
    case own([UInt8])
  }

  /// What is known of a frame besides its picture.
  public struct Attachments: Hashable, Sendable {
    /// The driver's count of frames, which wraps at 2^32.
    public var sequence: UInt32
    /// Whether the driver's clock jumped just before it, so that time says nothing there.
    public var isAfterClockJump: Bool
    /// When it was taken from the driver, in the capture clock (CLOCK_MONOTONIC).
    public var arrivalTime: MediaTime
    /// Whether exposure was set by hand when the frame arrived; nil where the camera does not say.
    public var isExposureCustom: Bool?
    /// How long the frame was exposed, as the camera was set when it arrived; nil where the camera
    /// chooses by itself.
    ///
    /// A change is in force some frames after it was made.
    public var exposureDuration: MediaTime?
    /// The gain, in the driver's unit, likewise.
    public var gain: Int64?

    init(_ observation: FrameObservation, _ exposure: ExposureInForce) {
      sequence = observation.sequence
      isAfterClockJump = observation.isClockJump
      arrivalTime = MediaTime(microseconds: observation.arrival)
      isExposureCustom = exposure.isByHand
      exposureDuration = exposure.duration
      gain = exposure.gainValue
    }
  }

  /// What the bytes are.
  public let formatDescription: FormatDescription
  /// When the frame was captured, in the capture clock (CLOCK_MONOTONIC), as the driver says.
  public let presentationTimeStamp: MediaTime
  /// How long a frame lasts at the rate that the device granted.
  public let duration: MediaTime
  /// What else is known of the frame.
  public let attachments: Attachments
  /// When it is decoded: frames arrive in the order in which they are shown.
  public var decodeTimeStamp: MediaTime { presentationTimeStamp }

  private let pool: BufferPool
  private let storage: Mutex<Storage>
  private let options: DataSink.Options
  let converters: ConverterPool

  init(
    _ observation: FrameObservation, _ exposure: ExposureInForce,
    _ heldBuffer: BufferPool.HeldBuffer,
    of pool: BufferPool, format: FormatDescription, duration: MediaTime, options: DataSink.Options,
    converters: ConverterPool
  ) {
    formatDescription = format
    presentationTimeStamp = MediaTime(microseconds: observation.microseconds)
    self.duration = duration
    attachments = Attachments(observation, exposure)
    self.pool = pool
    storage = Mutex(.held(heldBuffer))
    self.options = options
    self.converters = converters
  }

  deinit {
    if case .held(let heldBuffer) = storage.withLock({ $0 }) { giveBack(heldBuffer) }
  }

  /// Shows the bytes, which are valid inside the closure.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // Held during the call: the sample itself may release its buffer meanwhile.
    let storage = storage.withLock { storage in
      if case .held(let heldBuffer) = storage { pool.hold(heldBuffer) }
      return storage
    }
    switch storage {
    case .held(let heldBuffer):
      defer { pool.release(heldBuffer) }
      return try body(pool.bytes(of: heldBuffer))
    case .own(let bytes):
      let result = bytes.withUnsafeBytes { buffer in
        Swift.Result { () throws(Failure) in try body(buffer) }
      }
      return try result.get()
    }
  }

  /// Lets the bytes be changed, which nobody else sees.
  ///
  /// They are changed in place where nobody else has the frame, and copied first where someone
  /// has. One change is made at a time.
  public func withMutableBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // By a variable: what a lock gives out would have to be sendable.
    var outcome: Swift.Result<Result, Failure>?
    storage.withLock { storage in
      if case .held(let heldBuffer) = storage {
        if pool.hasOneHolder(heldBuffer) {
          let bytes = UnsafeMutableRawBufferPointer(mutating: pool.bytes(of: heldBuffer))
          outcome = Swift.Result { () throws(Failure) in try body(bytes) }
          return
        }
        let copy = Array(pool.bytes(of: heldBuffer))
        giveBack(heldBuffer)
        storage = .own(copy)
      }
      guard case .own(var bytes) = storage else { return }
      storage = .own([])  // Leaves one reference to the bytes, so that no copy is made.
      bytes.withUnsafeMutableBytes { buffer in
        outcome = Swift.Result { () throws(Failure) in try body(buffer) }
      }
      storage = .own(bytes)
    }
    guard let outcome else { preconditionFailure("A sample has its bytes.") }
    return try outcome.get()
  }

  private func giveBack(_ heldBuffer: BufferPool.HeldBuffer) {
    options.kept.wrappingSubtract(1, ordering: .relaxed)
    pool.release(heldBuffer)
  }
}

extension FormatDescription {
  init(_ delivery: FrameDelivery) {
    width = delivery.width
    height = delivery.height
    switch delivery.layout {
    case .compressed(let codec):
      mediaSubType = .codec(codec)
      bytesPerRow = 0
    case .raw(let format, let bytes):
      mediaSubType = .pixels(PixelFormat(rawValue: format.name))
      bytesPerRow = bytes
    }
  }
}
