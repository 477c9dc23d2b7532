// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankALSA
import OvercrankLinuxSystem
import OvercrankV4L2
import Synchronization

/// A simulated audio card with a configurable clock, timestamp jitter and faults.
///
/// The value of a sample is a function of its number on the card, and the numbers advance during
/// losses. A test can therefore distinguish lost from received samples. Time advances only while a
/// thread waits for audio.
package final class FakeAudioCard: ALSACalls {
  /// A fault that occurs at a sample number.
  package struct Fault: Sendable {
    package enum Kind: Sendable {
      /// The buffer overruns, and this many samples are lost.
      case overrun(lost: Int64)
      /// The machine suspends for as long as this many samples last.
      case suspend(lost: Int64)
      /// The card is unplugged.
      case unplug
      /// The card is unplugged, and a waiting stream first receives `EIO`.
      case unplugWhileWaiting
      /// The driver returns an error, as a negative errno.
      case error(CInt)
    }
    package let sample: Int64
    package let kind: Kind

    package init(at sample: Int64, _ kind: Kind) {
      self.sample = sample
      self.kind = kind
    }
  }

  /// The properties of the card.
  package struct Description: Sendable {
    package var node = AudioNode(card: 0, device: 0)
    package var names = AudioDescription(
      cardID: "Fake", cardName: "Fake card", driver: "Fake", deviceName: "Microphone")
    package var layouts: [SampleLayout] = [.s16, .s32]
    package var channelCounts = 1...2
    package var rates = [44_100, 48_000]
    /// Whether the nodes are the files in `nodeDirectory`, instead of the nodes that belong to
    /// ``node``.
    package var hasNodesInDirectory = false
    /// The clock error in parts per million.
    ///
    /// A positive clock is too fast.
    package var driftPPM: Int64 = 0
    /// The maximum delay of a timestamp, in nanoseconds.
    package var jitter: Int64 = 0
    package var faults: [Fault] = []
    /// The number of samples after which the stream stops.
    package var length: Int64 = .max
    /// The results that the card returns when it is opened and described.
    package var openResult: CInt = 0
    package var describeResult: CInt = 0
    /// The value of a channel at a sample number, from -1 to 1.
    package var wave: @Sendable (_ sample: Int64, _ channel: Int) -> Double = { _, _ in 0 }
    /// Called before time advances or a fault occurs; a test may block the card here.
    package var pace: @Sendable (_ sample: Int64) -> Void = { _ in }

    package init() {}
  }

  private struct State {
    var settings: AudioSettings?
    var isOpen = false
    var isRunning = false
    var isGone = false
    /// The number of times that the card was plugged in.
    ///
    /// Handles that were opened before the last time are invalid.
    var generation: UInt = 1
    var loss: CInt = 0
    /// The card's current sample number, and then the number of samples read or lost so far.
    var clock: Int64 = 0
    var read: Int64 = 0
    var faults: [Fault]
    var random: SeededGenerator
    var failingResumes = 0

    mutating func plugIn() {
      (isGone, isOpen) = (false, false)
      generation += 1
    }

    func isLost(_ handle: AudioHandle) -> Bool { isGone || handle.bits != generation }
  }

  package let description: Description
  package let nodeDirectory: String
  /// The time of sample 0, in nanoseconds.
  package static let epoch: Int64 = 77_000_000_000
  private let state: Mutex<State>

  package init(_ description: Description, seed: UInt64 = 1, nodeDirectory: String = "/nowhere") {
    self.description = description
    self.nodeDirectory = nodeDirectory
    state = Mutex(
      State(
        faults: description.faults.sorted { $0.sample < $1.sample },
        random: SeededGenerator(seed: seed)))
  }

  /// Whether the card is open.
  package var isOpen: Bool { state.withLock { $0.isOpen } }

  /// The time of a sample in nanoseconds, rounded down.
  package func nanoseconds(ofSample sample: Int64, rate: Int) -> Int64 {
    let scale = Int128(rate) * Int128(1_000_000 + description.driftPPM)
    return Self.epoch + Int64(Int128(sample) * 1_000_000_000 * 1_000_000 / scale)
  }

  /// Plugs an unplugged card in again.
  package func plugIn() {
    state.withLock { $0.plugIn() }
  }

  /// Plugs the card in again and opens it at once, as another program would.
  package func plugIn(openedBy handle: inout AudioHandle) {
    handle = state.withLock { state in
      state.plugIn()
      state.isOpen = true
      return AudioHandle(bits: state.generation)
    }
  }

  package func nodes() -> [String] {
    if state.withLock({ $0.isGone }) { return [] }
    if description.hasNodesInDirectory { return SystemFiles.entries(in: nodeDirectory) }
    let node = description.node
    return [
      "controlC\(node.card)", "pcmC\(node.card)D\(node.device)c", "pcmC\(node.card)D7p", "seq",
    ]
  }

  package func describe(_ node: AudioNode, _ description: inout AudioDescription) -> CInt {
    guard node == self.description.node, !state.withLock({ $0.isGone }) else { return -ENOENT }
    description = self.description.names
    return self.description.describeResult
  }

  package func open(_ name: String, _ handle: inout AudioHandle) -> CInt {
    guard name == description.node.hardwareName else { return -ENOENT }
    guard description.openResult == 0 else { return description.openResult }
    return state.withLock { state in
      guard !state.isGone else { return -ENOENT }
      guard !state.isOpen else { return -EBUSY }
      state.isOpen = true
      handle = AudioHandle(bits: state.generation)
      return 0
    }
  }

  package func close(_ handle: AudioHandle) {
    state.withLock { state in
      if handle.bits == state.generation { state.isOpen = false }
    }
  }

  package func abilities(
    _ handle: AudioHandle, _ choice: AudioChoice, _ abilities: inout AudioAbilities
  ) -> CInt {
    if let layout = choice.layout, !description.layouts.contains(layout) { return -EINVAL }
    if let count = choice.channelCount, !description.channelCounts.contains(count) {
      return -EINVAL
    }
    abilities = AudioAbilities(
      layouts: description.layouts, channelCounts: description.channelCounts,
      rates: description.rates)
    return 0
  }

  package func configure(_ handle: AudioHandle, _ settings: inout AudioSettings) -> CInt {
    guard description.layouts.contains(settings.layout),
      description.channelCounts.contains(settings.channelCount),
      description.rates.contains(settings.rate)
    else { return -EINVAL }
    let negotiated = settings
    state.withLock { $0.settings = negotiated }
    return 0
  }

  package func prepare(_ handle: AudioHandle) -> CInt {
    state.withLock { state in
      guard !state.isLost(handle) else { return -ENODEV }
      state.loss = 0
      return 0
    }
  }

  package func start(_ handle: AudioHandle) -> CInt {
    state.withLock { state in
      guard !state.isLost(handle) else { return -ENODEV }
      state.isRunning = true
      state.read = state.clock
      return 0
    }
  }

  package func resume(_ handle: AudioHandle) -> CInt {
    state.withLock { state in
      guard state.failingResumes == 0 else {
        state.failingResumes -= 1
        return -EAGAIN
      }
      return -ENOSYS
    }
  }

  package func drop(_ handle: AudioHandle) -> CInt {
    state.withLock { $0.isRunning = false }
    return 0
  }

  package func wait(_ handle: AudioHandle, milliseconds: CInt) -> CInt {
    let sample = state.withLock { state in
      let isStreaming =
        !state.isLost(handle) && state.loss == 0 && state.isRunning
        && state.clock < description.length
      return isStreaming ? state.clock : nil
    }
    if let sample { description.pace(sample) }
    return state.withLock { state in
      if state.isLost(handle) { return -ENODEV }
      if state.loss != 0 { return state.loss }
      guard let settings = state.settings, state.isRunning, state.clock < description.length else {
        usleep(1_000)
        return 0
      }
      if let fault = state.faults.first, fault.sample <= state.clock {
        state.faults.removeFirst()
        return apply(fault, &state)
      }
      state.clock += Int64(settings.periodSize)
      return 1
    }
  }

  private func apply(_ fault: Fault, _ state: inout State) -> CInt {
    switch fault.kind {
    case .overrun(let lost):
      state.clock += lost
      state.loss = -EPIPE
    case .suspend(let lost):
      state.clock += lost
      state.loss = -ESTRPIPE
      state.failingResumes = 2
    case .unplug:
      state.isGone = true
      return -ENODEV
    case .unplugWhileWaiting:
      state.isGone = true
      return -EIO
    case .error(let code): return code
    }
    return state.loss
  }

  package func timestamp(
    _ handle: AudioHandle, available: inout Int, nanoseconds: inout Int64
  ) -> CInt {
    var (count, time, result): (Int, Int64, CInt) = (0, 0, 0)
    state.withLock { state in
      result = state.loss
      count = Int(state.clock - state.read)
      let late =
        description.jitter > 0 ? Int64.random(in: 0...description.jitter, using: &state.random) : 0
      time = self.nanoseconds(ofSample: state.clock, rate: state.settings?.rate ?? 1) + late
    }
    (available, nanoseconds) = (count, time)
    return result
  }

  package func read(
    _ handle: AudioHandle, into memory: UnsafeMutableRawPointer, count: Int
  ) -> Int {
    let (settings, first, taken, loss) = state.withLock { state in
      let taken = min(count, Int(state.clock - state.read))
      defer { state.read += Int64(taken) }
      return (state.settings, state.read, taken, state.loss)
    }
    guard loss == 0 else { return Int(loss) }
    guard let settings, taken > 0 else { return -Int(EAGAIN) }
    for sample in 0..<taken {
      for channel in 0..<settings.channelCount {
        let value = description.wave(first + Int64(sample), channel)
        let position = (sample * settings.channelCount + channel) * settings.layout.byteCount
        Self.store(value, as: settings.layout, at: memory + position)
      }
    }
    return taken
  }

  /// Stores a sample in a sample format, rounded to the nearest value.
  package static func store(
    _ value: Double, as layout: SampleLayout, at position: UnsafeMutableRawPointer
  ) {
    func whole(_ bits: Int) -> Int32 {
      let scale = Double(1 << (bits - 1))
      return Int32(max(-scale, min(scale - 1, (value * scale).rounded())))
    }
    switch layout {
    case .s16: position.storeBytes(of: Int16(whole(16)).littleEndian, as: Int16.self)
    // The highest byte of this format is ignored, so a wrong value is stored in it.
    case .s24:
      let bits = UInt32(bitPattern: whole(24)) & 0xFF_FFFF | 0x5A00_0000
      position.storeBytes(of: bits.littleEndian, as: UInt32.self)
    case .s24Packed:
      let bits = UInt32(bitPattern: whole(24))
      for byte in 0..<3 {
        position.storeBytes(
          of: UInt8(truncatingIfNeeded: bits >> (8 * byte)), toByteOffset: byte, as: UInt8.self)
      }
    case .s32: position.storeBytes(of: whole(32).littleEndian, as: Int32.self)
    case .float: position.storeBytes(of: Float(value).bitPattern.littleEndian, as: UInt32.self)
    }
  }

  package func nanoseconds() -> Int64 {
    state.withLock { self.nanoseconds(ofSample: $0.clock, rate: $0.settings?.rate ?? 1) }
  }
}
