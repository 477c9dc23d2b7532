// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The calls that reach sound cards: those of ALSA's library, or those of a simulated card.
///
/// Each call returns a value or a negative errno. These calls are the lowest layer, so tests can
/// run all code above them with a simulated clock and simulated faults.
package protocol ALSACalls: Sendable {
  /// The directory of the device nodes, `/dev/snd`.
  var nodeDirectory: String { get }

  /// The names in ``nodeDirectory``, unsorted, including playback devices and other files.
  func nodes() -> [String]

  /// Describes a card and one of its capture devices: snd_ctl_pcm_info(3).
  func describe(_ node: AudioNode, _ description: inout AudioDescription) -> CInt

  /// Opens a capture device in nonblocking mode: snd_pcm_open(3).
  func open(_ name: String, _ handle: inout AudioHandle) -> CInt

  /// Closes a device: snd_pcm_close(3).
  func close(_ handle: AudioHandle)

  /// Reports the parameters that a device supports together with the fixed parameters of `choice`:
  /// snd_pcm_hw_params_any(3).
  func abilities(
    _ handle: AudioHandle, _ choice: AudioChoice, _ abilities: inout AudioAbilities
  ) -> CInt

  /// Configures a device and returns the granted settings: snd_pcm_hw_params(3),
  /// snd_pcm_sw_params(3).
  func configure(_ handle: AudioHandle, _ settings: inout AudioSettings) -> CInt

  /// Prepares a device before its start, also after an overrun: snd_pcm_prepare(3).
  func prepare(_ handle: AudioHandle) -> CInt

  /// Starts the stream: snd_pcm_start(3).
  func start(_ handle: AudioHandle) -> CInt

  /// Resumes a suspended device: snd_pcm_resume(3). Returns `-EAGAIN` while it is still suspended.
  func resume(_ handle: AudioHandle) -> CInt

  /// Stops the stream immediately: snd_pcm_drop(3).
  func drop(_ handle: AudioHandle) -> CInt

  /// Waits for one period of samples: snd_pcm_wait(3). Returns 1 for a period, or 0 after the
  /// timeout.
  func wait(_ handle: AudioHandle, milliseconds: CInt) -> CInt

  /// Returns the number of samples that can be read, and the time of this measurement on
  /// CLOCK_MONOTONIC: snd_pcm_htimestamp(3).
  func timestamp(
    _ handle: AudioHandle, available: inout Int, nanoseconds: inout Int64
  ) -> CInt

  /// Reads interleaved samples and returns their number per channel: snd_pcm_readi(3).
  func read(_ handle: AudioHandle, into memory: UnsafeMutableRawPointer, count: Int) -> Int

  /// The current time in nanoseconds, on the clock that timestamps samples.
  ///
  /// Real cards use `CLOCK_MONOTONIC`.
  func nanoseconds() -> Int64
}

/// The implementation of ``ALSACalls`` that newly opened devices use.
package enum ALSASystem {
  /// The calls to libasound.
  ///
  /// A test replaces these calls with a simulated card for its own Swift task.
  @TaskLocal package static var calls: any ALSACalls = LibraryCalls()
}

/// An open device, as an opaque number from ``ALSACalls``.
package struct AudioHandle: Hashable, Sendable {
  package let bits: UInt

  package init(bits: UInt = 0) { self.bits = bits }
}

/// A capture device, identified by its card and device number.
package struct AudioNode: Hashable, Sendable, Comparable {
  package let card: UInt32
  package let device: UInt32

  package init(card: UInt32, device: UInt32) {
    (self.card, self.device) = (card, device)
  }

  /// Parses a node name such as `pcmC0D1c`.
  ///
  /// Returns nil for playback devices and other names.
  package init?(named name: String) {
    guard name.hasPrefix("pcmC"), name.hasSuffix("c") else { return nil }
    let numbers = name.dropFirst(4).dropLast().split(
      separator: "D", omittingEmptySubsequences: false)
    guard numbers.count == 2, let card = Self.number(numbers[0]),
      let device = Self.number(numbers[1])
    else { return nil }
    self.init(card: card, device: device)
  }

  /// Parses an ALSA device name, `hw:0,1` or `hw:0`.
  ///
  /// Returns nil for other names.
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

  /// The ALSA name that opens the device directly, without a plugin that converts samples.
  package var hardwareName: String { "hw:\(card),\(device)" }
  /// The name of the card's control node.
  ///
  /// The symbolic links that udev makes for cards point to this node.
  package var controlName: String { "controlC\(card)" }

  package static func < (left: AudioNode, right: AudioNode) -> Bool {
    (left.card, left.device) < (right.card, right.device)
  }
}

/// The description of a card and one of its capture devices.
package struct AudioDescription: Hashable, Sendable {
  /// The card's short name, unique on this machine: `PCH`, `Loopback`.
  package var cardID = ""
  /// The card's display name.
  package var cardName = ""
  /// The name of the card's kernel driver.
  package var driver = ""
  /// The device's display name.
  package var deviceName = ""

  package init(
    cardID: String = "", cardName: String = "", driver: String = "", deviceName: String = ""
  ) {
    (self.cardID, self.cardName, self.driver) = (cardID, cardName, driver)
    self.deviceName = deviceName
  }
}

/// The format of an audio sample, always little-endian.
package enum SampleLayout: String, Hashable, Sendable, CaseIterable {
  /// 16-bit integer.
  case s16
  /// 24-bit integer in the low 3 of 4 bytes. The highest byte is ignored.
  case s24
  /// 24-bit integer in 3 bytes.
  case s24Packed = "s24_3"
  /// 32-bit integer.
  case s32
  /// 32-bit floating point, from -1 to 1.
  case float

  /// Bytes per sample of one channel.
  package var byteCount: Int {
    switch self {
    case .s16: 2
    case .s24Packed: 3
    case .s24, .s32, .float: 4
    }
  }
}

/// The parameters that a query fixes, to find the other parameters that a device supports together
/// with them.
package struct AudioChoice: Hashable, Sendable {
  package var layout: SampleLayout?
  package var channelCount: Int?

  package init(layout: SampleLayout? = nil, channelCount: Int? = nil) {
    (self.layout, self.channelCount) = (layout, channelCount)
  }
}

/// The supported parameters of a device.
package struct AudioAbilities: Hashable, Sendable {
  package var layouts: [SampleLayout] = []
  /// The minimum and maximum number of channels.
  package var channelCounts: ClosedRange<Int> = 1...1
  /// The supported rates, in samples per second.
  ///
  /// Contains only rates in ``usualRates``, because the device is asked about no other rate.
  package var rates: [Int] = []

  /// The sample rates that a device is asked about, in samples per second.
  package static let usualRates = [
    8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000,
  ]

  package init(
    layouts: [SampleLayout] = [], channelCounts: ClosedRange<Int> = 1...1, rates: [Int] = []
  ) {
    (self.layouts, self.channelCounts, self.rates) = (layouts, channelCounts, rates)
  }
}

/// The settings of a stream.
///
/// ``ALSACalls/configure(_:_:)`` replaces the requested values with the values that the driver
/// granted.
package struct AudioSettings: Hashable, Sendable {
  package var layout: SampleLayout
  package var channelCount: Int
  /// Samples per second of each channel.
  package var rate: Int
  /// Samples per channel between two interrupts.
  package var periodSize: Int
  /// The capacity of the ring buffer, in samples per channel.
  package var bufferSize: Int

  package init(
    layout: SampleLayout, channelCount: Int, rate: Int, periodSize: Int, bufferSize: Int
  ) {
    (self.layout, self.channelCount, self.rate) = (layout, channelCount, rate)
    (self.periodSize, self.bufferSize) = (periodSize, bufferSize)
  }
}
