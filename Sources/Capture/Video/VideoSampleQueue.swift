// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// The frames of one camera that wait in a ring for a consumer.
final class VideoSampleQueue: DeliveryQueue {
  let ring: VideoSampleRing
  private let pool: BufferPool
  private let format: FormatDescription
  /// The duration of each sample, which is the camera's frame duration.
  private let duration: MediaTime
  private let options: DataSink.Options
  private let counters: DataOutputCounters
  private let drops: EventHub<DroppedFrame>
  private let converters = ConverterPool()
  private let geometry: ConnectionGeometry
  /// Whether frames can be decoded alone.
  private let isConvertible: Bool
  /// The format that the samples are converted to.
  private let settings: VideoDataOutput.SettingsBox
  private let converter = SampleConverter()
  /// The oldest frame in the queue, if it is already converted.
  private let converted = Mutex<SampleBuffer?>(nil)

  init(
    _ ring: VideoSampleRing, from input: DeviceInput, _ geometry: ConnectionGeometry,
    _ settings: VideoDataOutput.SettingsBox, _ options: DataSink.Options,
    _ counters: DataOutputCounters, drops: EventHub<DroppedFrame>
  ) {
    (self.ring, self.geometry, self.settings) = (ring, geometry, settings)
    // The pool, the format and the duration are stored now, because the input may later reopen the
    // device in another mode.
    pool = input.pool
    format = FormatDescription(input.delivery)
    isConvertible = format.isConvertible
    duration = input.negotiatedFrameRate.frameDuration
    (self.options, self.counters, self.drops) = (options, counters, drops)
  }

  var count: Int { ring.count + (converted.withLock { $0 == nil } ? 0 : 1) }

  func passNoteOn() -> Bool {
    guard ring.beginsWithNote else { return false }
    if case .dropped(let reason, let observation)? = ring.pop() { report(observation, reason) }
    return true
  }

  /// Drops the oldest frame if the output holds more than its share of the buffers.
  ///
  /// The output holds too many after another output has joined, because its share is then smaller.
  func dropSurplus() -> Bool {
    guard ring.count > 0, !ring.beginsWithNote, options.isOverShare,
      case .held(let heldBuffer, let observation, _)? = ring.pop()
    else { return false }
    giveBack(heldBuffer)
    counters.note(.outOfBuffers)
    report(observation, .outOfBuffers)
    return true
  }

  private func report(_ frame: FrameObservation, _ reason: FrameDropReason) {
    drops.send(
      DroppedFrame(
        presentationTimeStamp: MediaTime(microseconds: frame.microseconds),
        sequence: frame.sequence, reason: reason))
  }

  /// Converts the oldest frame, if a conversion is needed, on the thread that delivers the frame.
  ///
  /// The converted frame no longer occupies an entry of the ring. A frame that cannot be converted
  /// is dropped as corrupt.
  func prepare() -> Bool {
    guard !ring.beginsWithNote, converted.withLock({ $0 == nil }) else { return false }
    guard case .held(let heldBuffer, let observation, let exposure)? = ring.oldest else {
      return false
    }
    let work = work(for: observation)
    guard !work.isNothing else { return false }
    _ = ring.pop()
    options.waiting.wrappingSubtract(1, ordering: .releasing)
    defer {
      options.kept.wrappingSubtract(1, ordering: .relaxed)
      pool.release(heldBuffer)
    }
    guard let (image, images) = try? converter.convert(pool.bytes(of: heldBuffer), format, work)
    else {
      counters.note(.corrupt)
      report(observation, .corrupt)
      return true
    }
    let sample = SampleBuffer(
      SampleBuffer.Attachments(observation, exposure, zoom(of: observation)),
      at: observation.microseconds, image, of: images, duration: duration, converters: converters)
    converted.withLock { $0 = sample }
    return false
  }

  /// The conversion that a frame needs before its delivery.
  private func work(for frame: FrameObservation) -> SampleConverter.Work {
    // Frames with inter-frame prediction cannot be decoded alone, so they are not converted.
    guard isConvertible else { return SampleConverter.Work() }
    return SampleConverter.Work(
      settings: settings.value, rotation: geometry.rotation,
      factor: geometry.outputFactor(atMicroseconds: frame.microseconds))
  }

  private func zoom(of frame: FrameObservation) -> FrameZoom {
    let factor = geometry.factor(atMicroseconds: frame.microseconds)
    guard factor != 1, !isConvertible else { return FrameZoom(factor: factor) }
    return FrameZoom(
      factor: factor,
      cleanAperture: CleanAperture(
        width: format.width, height: format.height,
        factor: geometry.outputFactor(atMicroseconds: frame.microseconds)))
  }

  func take() -> SampleBuffer? {
    if let sample = converted.withLock({ $0.take() }) {
      counters.delivered.wrappingAdd(1, ordering: .releasing)
      return sample
    }
    guard let (heldBuffer, observation, exposure) = takeHeld() else { return nil }
    return SampleBuffer(
      SampleBuffer.Attachments(observation, exposure, zoom(of: observation)),
      at: observation.microseconds, heldBuffer, of: pool, format: format, duration: duration,
      options: options, converters: converters)
  }

  /// Removes and returns the oldest frame, in a form that needs no allocation unless the frame is
  /// converted.
  ///
  /// Returns nil if the oldest entry is a note of a dropped frame or the queue is empty.
  func takeFrame() -> CapturedFrame? {
    if let sample = converted.withLock({ $0.take() }) {
      counters.delivered.wrappingAdd(1, ordering: .releasing)
      return CapturedFrame(sample)
    }
    guard let (heldBuffer, observation, exposure) = takeHeld() else { return nil }
    return CapturedFrame(
      observation, exposure, zoom(of: observation), heldBuffer, of: pool, format: format,
      duration: duration, options: options)
  }

  private func takeHeld() -> (BufferPool.HeldBuffer, FrameObservation, ExposureInForce)? {
    guard case .held(let heldBuffer, let observation, let exposure)? = ring.pop() else {
      return nil
    }
    options.waiting.wrappingSubtract(1, ordering: .releasing)
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return (heldBuffer, observation, exposure)
  }

  func drain() {
    converted.withLock { $0 = nil }
    while let entry = ring.pop() {
      if case .held(let heldBuffer, _, _) = entry { giveBack(heldBuffer) }
    }
  }

  private func giveBack(_ heldBuffer: BufferPool.HeldBuffer) {
    options.kept.wrappingSubtract(1, ordering: .relaxed)
    options.waiting.wrappingSubtract(1, ordering: .relaxed)
    pool.release(heldBuffer)
  }
}

/// A ring between the capture thread and one consumer.
///
/// It contains held frames and notes of dropped frames.
final class VideoSampleRing: Sendable {
  /// A held frame, or a note of a dropped frame with the reason.
  enum Entry {
    case held(BufferPool.HeldBuffer, FrameObservation, ExposureInForce)
    case dropped(FrameDropReason, FrameObservation)
  }

  private let entries: SPSCRing<Entry>
  var capacity: Int { entries.capacity }

  /// Creates an empty ring for a number of entries.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  init(capacity: Int) throws(MediaError) {
    entries = try CallStage.resources.converting { () throws(CallFailure) in
      try SPSCRing(capacity: capacity)
    }
  }

  /// The number of entries in the ring.
  var count: Int { entries.count }

  /// Appends an entry, or returns false if the ring is full.
  func push(_ entry: Entry) -> Bool { entries.push(entry) }

  /// Whether the oldest entry is a note of a dropped frame.
  var beginsWithNote: Bool {
    if case .dropped? = entries[entries.startNumber] { true } else { false }
  }

  /// The oldest entry, or nil if the ring is empty.
  var oldest: Entry? { entries[entries.startNumber] }

  /// Removes and returns the oldest entry, or returns nil if the ring is empty.
  func pop() -> Entry? { entries.pop() }
}
