// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCameraControls
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// Measures the brightness of a camera's frames five times per second, on its own thread.
///
/// Without listeners there is no thread, and no frame is copied.
final class SceneMonitor: BrightnessMonitor {
  /// A listener that receives measurements of the brightness of frames, as closures.
  struct Listener: Sendable {
    /// Called on the monitor's thread with the brightness of a frame and its capture time in
    /// microseconds.
    let see: @Sendable (BrightnessGrid, Int64) -> Void
    /// Called when the monitored camera's input is destroyed.
    var end: @Sendable () -> Void = {}
  }

  private struct State {
    var listeners: [Int: Listener] = [:]
    var lastNumber = 0
    weak var sink: SceneSink?
    var hasThread = false
    var isOver = false
  }
  private let state = Mutex(State())
  /// Signaled for each copied frame, and when the thread has to end.
  private let wake = DispatchSemaphore(value: 0)

  /// Adds a listener.
  ///
  /// The listener is called five times per second while the camera streams.
  ///
  /// - Returns: A number for ``remove(_:)``, or nil if no thread can be created or the input is
  ///   destroyed.
  func add(_ listener: Listener) -> Int? {
    let (number, sink) = state.withLock { state -> (Int?, SceneSink?) in
      guard !state.isOver else { return (nil, nil) }
      if !state.hasThread {
        guard (try? BlockingThread.started { self.run() }.detach()) != nil else {
          return (nil, nil)
        }
        state.hasThread = true
      }
      state.lastNumber += 1
      state.listeners[state.lastNumber] = listener
      return (state.lastNumber, state.sink)
    }
    sink?.prepare()
    return number
  }

  func addListener(_ see: @escaping @Sendable (Double) -> Void) -> Int? {
    add(Listener { grid, _ in see(grid.meanLevel) })
  }

  /// Removes a listener.
  ///
  /// A call that is in progress continues.
  func remove(_ number: Int) {
    state.withLock { state in
      state.listeners[number] = nil
      if state.listeners.isEmpty { state.sink?.rest() }
    }
    wake.signal()
  }

  /// Creates the sink for a new capture.
  func makeSink(of format: FormatDescription, maximumByteCount: Int) -> SceneSink {
    let sink = SceneSink(format, maximumByteCount: maximumByteCount, wake: wake)
    let isWanted = state.withLock { state in
      state.sink = sink
      return !state.listeners.isEmpty
    }
    if isWanted { sink.prepare() }
    return sink
  }

  /// Removes all listeners and calls their `end` closures.
  ///
  /// Called when the input is destroyed.
  func end() {
    let listeners = state.withLock { state in
      state.isOver = true
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    wake.signal()
    for listener in listeners { listener.end() }
  }

  /// The loop of the monitor's thread.
  ///
  /// It ends when the last listener is removed.
  private func run() {
    var image = PixelBuffer(format: .gray)
    while true {
      wake.wait()
      let (sink, listeners) = state.withLock { state in
        if state.listeners.isEmpty { state.hasThread = false }
        return (state.sink, Array(state.listeners.values))
      }
      if listeners.isEmpty { return }
      guard let time = sink?.takeFrame(into: &image) else { continue }
      let grid = BrightnessGrid(image)
      for listener in listeners { listener.see(grid, time) }
    }
  }
}

/// The sink of a scene monitor.
///
/// It copies a frame every 200 ms.
final class SceneSink: FrameSink {
  /// The interval between measured frames, in microseconds.
  static let interval: Int64 = 200_000

  private let format: FormatDescription
  private let maximumByteCount: Int
  private let wake: DispatchSemaphore
  private let converters = ConverterPool()
  /// Whether frames are to be copied.
  ///
  /// True only while a listener exists and memory is allocated.
  private let isWanted = Atomic<Bool>(false)
  /// Whether a copied frame waits for the monitor's thread.
  ///
  /// If true, only the monitor's thread may access the memory; if false, only the capture thread.
  private let isFull = Atomic<Bool>(false)
  private let hasMemory = Mutex(false)
  // The capture thread reads `bytes` without this lock. The pointer is therefore written only once,
  // before `isWanted` is set.
  private nonisolated(unsafe) var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private nonisolated(unsafe) var byteCount = 0
  private nonisolated(unsafe) var time: Int64 = 0
  // Frames captured before this time, in microseconds, are not copied. Used only by the capture
  // thread.
  private nonisolated(unsafe) var due: Int64?

  init(_ format: FormatDescription, maximumByteCount: Int, wake: DispatchSemaphore) {
    (self.format, self.maximumByteCount, self.wake) = (format, maximumByteCount, wake)
  }

  deinit { bytes.deallocate() }

  /// Starts to copy frames, and allocates the memory for them.
  func prepare() {
    hasMemory.withLock { hasMemory in
      if !hasMemory {
        bytes = .allocate(byteCount: max(1, maximumByteCount), alignment: 64)
        hasMemory = true
      }
      isWanted.store(true, ordering: .releasing)
    }
  }

  /// Stops copying frames.
  func rest() { isWanted.store(false, ordering: .relaxed) }

  var keeping: FrameKeeping { .never }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard isWanted.load(ordering: .acquiring), frame.isWhole,
      !isFull.load(ordering: .acquiring), frame.bytes.count <= bytes.count
    else { return nil }
    let now = frame.observation.microseconds
    // If the clock jumped backward, `due` is far in the future. The frame is then copied at once.
    if let due, now < due, due &- now <= Self.interval { return nil }
    due = now &+ Self.interval
    bytes.copyMemory(from: frame.bytes)
    (byteCount, time) = (frame.bytes.count, now)
    isFull.store(true, ordering: .releasing)
    wake.signal()
    return nil
  }

  func end(_ end: CaptureEnd) { due = nil }

  /// Converts the waiting frame to gray.
  ///
  /// Called on the monitor's thread.
  ///
  /// - Returns: The frame's capture time in microseconds, or nil if no frame waits or it cannot be
  ///   converted.
  func takeFrame(into image: inout PixelBuffer) -> Int64? {
    guard isFull.load(ordering: .acquiring) else { return nil }
    defer { isFull.store(false, ordering: .releasing) }
    do throws(CallFailure) {
      try converters.convert(
        UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]), format, to: .gray
      )
      .copy(into: &image)
    } catch { return nil }
    return time
  }
}

/// The mean luma of each cell of an image, in a grid of at most 32 by 24 cells.
package struct BrightnessGrid: Sendable {
  private static let (columns, rows) = (32, 24)

  /// The mean luma of each cell, from 0 to 255.
  ///
  /// Empty for an image without pixels.
  package let averages: [Double]

  /// Measures a gray image with 8 bits per pixel.
  package init(_ image: PixelBuffer) {
    let (width, height, pixels) = (image.width, image.height, image.bytes)
    let (columns, rows) = (min(Self.columns, width), min(Self.rows, height))
    var averages: [Double] = []
    if columns > 0, rows > 0, width * height <= pixels.count {
      for row in 0..<rows {
        let lines = row * height / rows..<(row + 1) * height / rows
        for column in 0..<columns {
          let places = column * width / columns..<(column + 1) * width / columns
          var sum = 0
          for line in lines {
            for position in places { sum += Int(pixels[line * width + position]) }
          }
          averages.append(Double(sum) / Double(lines.count * places.count))
        }
      }
    }
    self.averages = averages
  }

  init(averages: [Double]) { self.averages = averages }

  /// The mean luma of the image, from 0 (black) to 1.
  package var meanLevel: Double {
    averages.isEmpty ? 0 : averages.reduce(0, +) / Double(averages.count) / 255
  }
}
