// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The calls by which sound cards are reached: those of ALSA's library, or of a card in this
/// process.
///
/// Each answers with a value or a negative errno. The seam lies here so that all above it, this
/// room included, runs unchanged on a card whose clock and faults a test controls.
package protocol ALSACalls: Sendable {
  /// The folder that nodes appear in and go from, `/dev/snd`.
  var nodeFolder: String { get }

  /// The names in ``nodeFolder``, of capture devices and of others, in no order.
  func nodes() -> [String]

  /// What a card says of itself and of one of its capture devices: snd_ctl_pcm_info(3).
  func describe(_ node: AudioNode, _ description: inout AudioDescription) -> CInt

  /// Opens a capture device without waiting for it: snd_pcm_open(3).
  func open(_ name: String, _ handle: inout AudioHandle) -> CInt

  /// Closes a device: snd_pcm_close(3).
  func close(_ handle: AudioHandle)

  /// What a device can do, once some of it is chosen: snd_pcm_hw_params_any(3).
  func abilities(
    _ handle: AudioHandle, _ choice: AudioChoice, _ abilities: inout AudioAbilities
  ) -> CInt

  /// Sets a device up, and tells what it granted: snd_pcm_hw_params(3), snd_pcm_sw_params(3).
  func configure(_ handle: AudioHandle, _ settings: inout AudioSettings) -> CInt

  /// Makes a device ready to start, also after an overrun: snd_pcm_prepare(3).
  func prepare(_ handle: AudioHandle) -> CInt

  /// Starts the stream: snd_pcm_start(3).
  func start(_ handle: AudioHandle) -> CInt

  /// Wakes a suspended device; `-EAGAIN` while it sleeps: snd_pcm_resume(3).
  func resume(_ handle: AudioHandle) -> CInt

  /// Ends the stream at once: snd_pcm_drop(3).
  func drop(_ handle: AudioHandle) -> CInt

  /// Waits for a period of samples; 1 when there is one, 0 at the time limit: snd_pcm_wait(3).
  func wait(_ handle: AudioHandle, milliseconds: CInt) -> CInt

  /// How many samples wait, and when that was, on CLOCK_MONOTONIC: snd_pcm_htimestamp(3).
  func timestamp(
    _ handle: AudioHandle, available: inout Int, nanoseconds: inout Int64
  ) -> CInt

  /// Takes samples of all channels, interleaved, and answers with their number: snd_pcm_readi(3).
  func read(_ handle: AudioHandle, into memory: UnsafeMutableRawPointer, count: Int) -> Int

  /// The clock that the stamps are of, in nanoseconds; `CLOCK_MONOTONIC` for the kernel.
  func nanoseconds() -> Int64
}

/// Where sound cards are reached from here on.
package enum ALSASystem {
  /// ALSA's calls, unless a test puts a card of its own in their place for its task.
  @TaskLocal package static var calls: any ALSACalls = LibraryCalls()
}

/// An open device, by a number that its calls gave it.
package struct AudioHandle: Hashable, Sendable {
  package let bits: UInt

  package init(bits: UInt = 0) { self.bits = bits }
}

/// A capture device of a card, by the numbers that the kernel gave both.
package struct AudioNode: Hashable, Sendable, Comparable {
  package let card: UInt32
  package let device: UInt32

  package init(card: UInt32, device: UInt32) {
    self.card = card
    self.device = device
  }

  /// The node of a name such as `pcmC0D1c`; nil for playback, and for anything else.
  package init?(named name: String) {
    guard name.hasPrefix("pcmC"), name.hasSuffix("c") else { return nil }
    let numbers = name.dropFirst(4).dropLast().split(
      separator: "D", omittingEmptySubsequences: false)
    guard numbers.count == 2, let card = Self.number(numbers[0]),
      let device = Self.number(numbers[1])
    else { return nil }
    self.init(card: card, device: device)
  }

  /// The device that `hw:0,1` or `hw:0` means; nil for anything else.
  package init?(hardwareName name: String) {
    guard name.hasPrefix("hw:") else { return nil }
    let numbers = name.dropFirst(3).split(separator: ",", omittingEmptySubsequences: false)
    guard (1...2).contains(numbers.count), let card = Self.number(numbers[0]) else { return nil }
    let device = numbers.count == 2 ? Self.number(numbers[1]) : 0
    guard let device else { return nil }
    self.init(card: card, device: device)
  }

  private static func number(_ text: Substring) -> UInt32? {
    text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) ? UInt32(text) : nil
  }

  /// What ALSA calls the device: without any conversion on its way.
  package var hardwareName: String { "hw:\(card),\(device)" }
  /// The name of the node by which its card is asked, and by which udev names the card.
  package var controlName: String { "controlC\(card)" }

  package static func < (left: AudioNode, right: AudioNode) -> Bool {
    (left.card, left.device) < (right.card, right.device)
  }
}

/// What a card says of itself, and of a capture device of its.
package struct AudioDescription: Hashable, Sendable {
  /// The card's short name, unique in the machine: `PCH`, `Loopback`.
  package var cardID = ""
  /// The card's name for people.
  package var cardName = ""
  /// The driver's name.
  package var driver = ""
  /// The device's name for people.
  package var deviceName = ""

  package init(
    cardID: String = "", cardName: String = "", driver: String = "", deviceName: String = ""
  ) {
    self.cardID = cardID
    self.cardName = cardName
    self.driver = driver
    self.deviceName = deviceName
  }
}

/// How a sample is stored, always with its low byte first.
package enum SampleLayout: String, Hashable, Sendable, CaseIterable {
  /// 16 bits.
  case s16
  /// 24 bits in 4 bytes, the highest of which says nothing.
  case s24
  /// 24 bits in 3 bytes.
  case s24Packed = "s24_3"
  /// 32 bits.
  case s32
  /// 32 bits of a floating-point number between -1 and 1.
  case float

  /// Bytes from sample to sample of one channel.
  package var byteCount: Int {
    switch self {
    case .s16: 2
    case .s24Packed: 3
    case .s24, .s32, .float: 4
    }
  }
}

/// What of a device's abilities is chosen already.
package struct AudioChoice: Hashable, Sendable {
  package var layout: SampleLayout?
  package var channelCount: Int?

  package init(layout: SampleLayout? = nil, channelCount: Int? = nil) {
    self.layout = layout
    self.channelCount = channelCount
  }
}

/// What a device can do.
package struct AudioAbilities: Hashable, Sendable {
  package var layouts: [SampleLayout] = []
  /// The fewest and the most channels.
  package var channelCounts: ClosedRange<Int> = 1...1
  /// Of the rates that sound is recorded at, those that the device has, in samples a second.
  package var rates: [Int] = []

  /// The rates that devices are asked for.
  package static let usualRates = [
    8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000,
  ]

  package init(
    layouts: [SampleLayout] = [], channelCounts: ClosedRange<Int> = 1...1, rates: [Int] = []
  ) {
    self.layouts = layouts
    self.channelCounts = channelCounts
    self.rates = rates
  }
}

/// How a device is to stream, and after ``ALSACalls/configure(_:_:)`` how it does.
package struct AudioSettings: Hashable, Sendable {
  package var layout: SampleLayout
  package var channelCount: Int
  /// Samples a second of each channel.
  package var rate: Int
  /// Samples from one interrupt to the next.
  package var periodSize: Int
  /// Samples that may wait.
  package var bufferSize: Int

  package init(
    layout: SampleLayout, channelCount: Int, rate: Int, periodSize: Int, bufferSize: Int
  ) {
    self.layout = layout
    self.channelCount = channelCount
    self.rate = rate
    self.periodSize = periodSize
    self.bufferSize = bufferSize
  }
}
