// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// A video format: its pixel format or codec, and its size.
public struct FormatDescription: Hashable, Sendable {
  /// The pixel format or the codec.
  public let mediaSubType: MediaSubType
  /// The width in pixels.
  public let width: Int
  /// The height in pixels.
  public let height: Int
  /// The stride of the first plane in bytes, or 0 for packed rows and compressed frames.
  public let bytesPerRow: Int

  /// Creates a video format.
  ///
  /// - Parameters:
  ///   - mediaSubType: The pixel format or the codec.
  ///   - width: The width in pixels.
  ///   - height: The height in pixels.
  ///   - bytesPerRow: The stride of the first plane in bytes. 0 for packed rows and compressed
  ///     frames.
  public init(mediaSubType: MediaSubType, width: Int, height: Int, bytesPerRow: Int = 0) {
    self.mediaSubType = mediaSubType
    self.width = width
    self.height = height
    self.bytesPerRow = bytesPerRow
  }
}

/// A captured frame with its time, in the camera's own buffer until it is modified.
///
/// The buffer returns to the camera with the last reference. A program that keeps many frames
/// causes drops with ``FrameDropReason/outOfBuffers``.
///
/// All calls may come from any thread, also concurrently. Each concurrent conversion uses a converter
/// of its own.
public final class SampleBuffer: Sendable {
  private enum Storage {
    case held(BufferPool.HeldBuffer)
    case own([UInt8])
  }

  /// Information about a frame besides its image.
  public struct Attachments: Hashable, Sendable {
    /// The driver's frame counter, which wraps at 2^32.
    public var sequence: UInt32
    /// Whether the driver's clock jumped just before this frame.
    ///
    /// The time from the previous frame is then meaningless.
    public var isAfterClockJump: Bool
    /// The time of dequeueing from the driver, on the capture clock (`CLOCK_MONOTONIC`).
    public var arrivalTime: MediaTime
    /// Whether exposure was manual when the frame arrived.
    ///
    /// Nil if the camera does not report it.
    public var isExposureCustom: Bool?
    /// The exposure duration set when the frame arrived, or nil for automatic exposure.
    ///
    /// A change of the setting takes effect some frames later.
    public var exposureDuration: MediaTime?
    /// The gain set when the frame arrived, in the driver's unit.
    ///
    /// A change takes effect some frames later.
    public var gain: Int64?
    /// The manual ISO value, likewise.
    public var iso: Double?
    /// The exposure bias in thousandths of an EV, or nil if the camera has none.
    public var exposureTargetBias: Int64?
    /// The metering mode of automatic exposure, or nil if the camera does not report it.
    public var meteringMode: MeteringMode?
    /// Whether white balance was manual, or nil if the camera does not report it.
    public var isWhiteBalanceCustom: Bool?
    /// The manual color temperature in kelvin, or nil if white balance was automatic.
    public var whiteBalanceTemperature: Int64?
    /// The f-number of the aperture, or nil if the camera does not report it.
    public var fNumber: Rational?
    /// True if the camera's LED was off, otherwise nil.
    public var isFlashOff: Bool?
    /// Values that the program attaches, by their Exif names.
    ///
    /// They replace values of ``SampleBuffer/exif`` and add others. Pixel buffers made from the sample
    /// carry them too.
    public var properties: [String: String] = [:]

    init(_ observation: FrameObservation, _ exposure: ExposureInForce) {
      sequence = observation.sequence
      isAfterClockJump = observation.isClockJump
      arrivalTime = MediaTime(microseconds: observation.arrival)
      isExposureCustom = exposure.isByHand
      exposureDuration = exposure.duration
      gain = exposure.gainValue
      iso = exposure.iso
      exposureTargetBias = exposure.exposureBias
      meteringMode = exposure.meteringMode
      isWhiteBalanceCustom = exposure.isWhiteBalanceByHand
      whiteBalanceTemperature = exposure.whiteBalanceTemperature
      fNumber = exposure.fNumber
      isFlashOff = exposure.isFlashOff ? true : nil
    }
  }

  /// The pixel format or codec, and the size.
  public let formatDescription: FormatDescription
  /// The capture time of the frame from the driver, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The frame duration at the rate that the driver reports.
  public let duration: MediaTime
  /// Further information about the frame.
  ///
  /// May be set. Everyone who has the sample sees the change.
  public var attachments: Attachments {
    get { attached.withLock { $0 } }
    set { attached.withLock { $0 = newValue } }
  }
  /// The decode time.
  ///
  /// It equals the presentation time, since frames arrive in display order.
  public var decodeTimeStamp: MediaTime { presentationTimeStamp }

  private let attached: Mutex<Attachments>
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
    attached = Mutex(Attachments(observation, exposure))
    self.pool = pool
    storage = Mutex(.held(heldBuffer))
    self.options = options
    self.converters = converters
  }

  deinit {
    if case .held(let heldBuffer) = storage.withLock({ $0 }) { giveBack(heldBuffer) }
  }

  /// Calls a closure with the bytes, which are valid only during the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // An extra hold keeps the buffer valid if another thread modifies the sample meanwhile.
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

  /// Calls a closure that may modify the bytes, without effect on other holders of the frame.
  ///
  /// The bytes are modified in place if this sample is the only holder of the buffer. Otherwise
  /// they are copied first. Concurrent modifications run one after the other.
  public func withMutableBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // The result passes through a variable because the return value of `withLock` must be
    // `Sendable`.
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
