// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// A video format: its pixel format or codec, and its size.
public struct FormatDescription: Hashable, Sendable {
  /// The pixel format or the codec.
  public let mediaSubType: MediaSubType
  /// The frame width in pixels.
  public let width: Int
  /// The frame height in pixels.
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
    (self.mediaSubType, self.width, self.height) = (mediaSubType, width, height)
    self.bytesPerRow = bytesPerRow
  }
}

/// A captured frame with its time.
///
/// Its bytes are in the camera's own buffer until they are modified.
///
/// The buffer returns to the camera when the last reference is released. If a program keeps many
/// frames, the camera runs out of buffers and frames are dropped with
/// ``FrameDropReason/outOfBuffers``.
///
/// All calls may come from any thread, also concurrently. Each concurrent conversion uses a
/// separate converter.
public final class SampleBuffer: Sendable {
  private enum Storage {
    case held(BufferPool.HeldBuffer)
    case own([UInt8])
    case converted(PixelBuffer)
  }

  /// The owner of the memory that contains the sample's bytes.
  private enum Origin {
    /// The camera's buffer pool, and the counters of the output that holds the buffer.
    case camera(BufferPool, DataSink.Options)
    /// The pool of the converter that made the image.
    case converter(PixelBufferPool)
  }

  /// Information about a frame besides its image.
  public struct Attachments: Hashable, Sendable {
    /// The driver's frame counter, which wraps at 2^32.
    public var sequence: UInt32
    /// Whether the driver's clock jumped just before this frame.
    ///
    /// If true, the difference to the time of the previous frame is not a duration.
    public var isAfterClockJump: Bool
    /// The time of dequeueing from the driver, on the capture clock (`CLOCK_MONOTONIC`).
    public var arrivalTime: MediaTime
    /// Whether exposure was manual when the frame arrived, or nil if the camera does not report the
    /// exposure mode.
    public var isExposureCustom: Bool?
    /// The manual exposure duration when the frame arrived, or nil if exposure was automatic.
    ///
    /// A change of the setting affects the image only some frames later.
    public var exposureDuration: MediaTime?
    /// The manual gain when the frame arrived, in the driver's unit, or nil if gain was automatic.
    ///
    /// A change of the setting affects the image only some frames later.
    public var gain: Int64?
    /// The manual ISO value when the frame arrived, or nil if ISO was automatic.
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
    /// The factor by which the zoom enlarges the image.
    public var videoZoomFactor = 1.0
    /// The part of the image that the zoom shows, if the bytes still contain the whole image.
    ///
    /// Nil without a zoom, and for frames that are cropped.
    public var cleanAperture: CleanAperture?
    /// Values that the program attaches, by their Exif names.
    ///
    /// A property replaces the value of ``SampleBuffer/exif`` with the same name. Pixel buffers
    /// made from the sample carry the properties too.
    public var properties: [String: String] = [:]

    package init(
      _ observation: FrameObservation, _ exposure: ExposureInForce, _ zoom: FrameZoom
    ) {
      videoZoomFactor = zoom.factor
      cleanAperture = zoom.cleanAperture
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
  /// The capture time that the driver reports, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The frame duration at the rate that the driver reports.
  public let duration: MediaTime
  /// Further information about the frame.
  ///
  /// A program can change the attachments. All references to this sample share them.
  public var attachments: Attachments {
    get { attached.withLock { $0 } }
    set { attached.withLock { $0 = newValue } }
  }
  /// The decode time, which equals the presentation time because frames arrive in display order.
  public var decodeTimeStamp: MediaTime { presentationTimeStamp }

  private let attached: Mutex<Attachments>
  private let origin: Origin
  private let storage: Mutex<Storage>
  let converters: ConverterPool

  init(
    _ attachments: Attachments, at microseconds: Int64, _ heldBuffer: BufferPool.HeldBuffer,
    of pool: BufferPool, format: FormatDescription, duration: MediaTime, options: DataSink.Options,
    converters: ConverterPool
  ) {
    formatDescription = format
    presentationTimeStamp = MediaTime(microseconds: microseconds)
    self.duration = duration
    attached = Mutex(attachments)
    origin = .camera(pool, options)
    storage = Mutex(.held(heldBuffer))
    self.converters = converters
  }

  /// Creates a sample from a converted image.
  init(
    _ attachments: Attachments, at microseconds: Int64, _ image: PixelBuffer,
    of pool: PixelBufferPool, duration: MediaTime, converters: ConverterPool
  ) {
    formatDescription = FormatDescription(
      mediaSubType: .pixels(image.format), width: image.width, height: image.height)
    presentationTimeStamp = MediaTime(microseconds: microseconds)
    self.duration = duration
    attached = Mutex(attachments)
    origin = .converter(pool)
    storage = Mutex(.converted(image))
    self.converters = converters
  }

  deinit {
    let last = storage.withLock { storage in
      defer { storage = .own([]) }  // Leaves one reference to an image, which the pool reuses.
      return storage
    }
    switch last {
    case .held(let heldBuffer): giveBack(heldBuffer)
    case .converted(let image):
      if case .converter(let pool) = origin { pool.recycle(image) }
    case .own: break
    }
  }

  /// Calls a closure with the bytes, which are valid only during the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // Another thread may modify the sample during the call and so release the buffer. The extra
    // hold keeps the buffer valid.
    let storage = storage.withLock { storage in
      if case .held(let heldBuffer) = storage, case .camera(let pool, _) = origin {
        pool.hold(heldBuffer)
      }
      return storage
    }
    switch (storage, origin) {
    case (.held(let heldBuffer), .camera(let pool, _)):
      defer { pool.release(heldBuffer) }
      return try body(pool.bytes(of: heldBuffer))
    case (.held, .converter): preconditionFailure("A converted sample holds no camera's buffer.")
    case (.own(let bytes), _): return try Self.call(body, bytes)
    case (.converted(let image), _): return try Self.call(body, image.bytes)
    }
  }

  private static func call<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result, _ bytes: [UInt8]
  ) throws(Failure) -> Result {
    try bytes.span.withUnsafeBytes { (buffer) throws(Failure) in
      try body(buffer)
    }
  }

  /// The image of a converted sample, or nil if the bytes are the camera's.
  var image: PixelBuffer? {
    storage.withLock { storage in
      if case .converted(let image) = storage { image } else { nil }
    }
  }

  /// The camera's buffer that holds the bytes, or nil if they are elsewhere.
  package var cameraBuffer: CameraBuffer? {
    storage.withLock { storage in
      guard case .held(let heldBuffer) = storage, case .camera(let pool, _) = origin else {
        return nil
      }
      return CameraBuffer(pool: pool, index: pool.index(of: heldBuffer))
    }
  }

  /// Calls a closure that may modify the bytes of this sample.
  ///
  /// If other samples or outputs hold the same buffer, the bytes are copied first, so that the
  /// change does not affect them. Otherwise the bytes are modified in place. Concurrent
  /// modifications run one after the other.
  public func withMutableBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // `withLock` can only return a `Sendable` value. A variable outside the closure receives the
    // result instead.
    var outcome: Swift.Result<Result, Failure>?
    storage.withLock { storage in
      if case .converted(var image) = storage {
        storage = .own([])  // Leaves one reference, so that the image is not copied.
        image.withUnsafeMutableBytes { buffer in
          outcome = Swift.Result { () throws(Failure) in try body(buffer) }
        }
        storage = .converted(image)
        return
      }
      if case .held(let heldBuffer) = storage, case .camera(let pool, _) = origin {
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
      storage = .own([])  // Leaves one reference, so that the array is not copied.
      bytes.withUnsafeMutableBytes { buffer in
        outcome = Swift.Result { () throws(Failure) in try body(buffer) }
      }
      storage = .own(bytes)
    }
    guard let outcome else { preconditionFailure("A sample has its bytes.") }
    return try outcome.get()
  }

  private func giveBack(_ heldBuffer: BufferPool.HeldBuffer) {
    guard case .camera(let pool, let options) = origin else { return }
    options.kept.wrappingSubtract(1, ordering: .relaxed)
    pool.release(heldBuffer)
  }
}

extension FormatDescription {
  package init(_ delivery: FrameDelivery) {
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
