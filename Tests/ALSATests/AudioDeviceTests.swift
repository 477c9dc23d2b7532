// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankALSA
import OvercrankMediaCore
import TestSupport
import Testing

/// Audio devices, simulated by a fake audio card.
struct AudioDeviceTests {
  @Test(arguments: [
    ("pcmC0D1c", "hw:0,1"), ("pcmC12D0c", "hw:12,0"), ("pcmC0D1p", nil), ("controlC0", nil),
    ("pcmCD1c", nil), ("pcmC0Dc", nil), ("pcmC0D1D2c", nil), ("pcmC99999999999D0c", nil),
    ("pcmC-1D0c", nil),
  ])
  func `Only ALSA capture nodes get an hw device name`(name: String, device: String?) {
    #expect(AudioNode(named: name)?.hardwareName == device)
  }

  private static let settings = AudioSettings(
    layout: .s16, channelCount: 1, rate: 48_000, periodSize: 480, bufferSize: 4_800)

  /// Runs a closure with an audio device that streams from a fake audio card.
  private func withDevice(
    _ card: FakeAudioCard, _ body: (borrowing AudioDevice) throws -> Void
  ) throws {
    try ALSASystem.$calls.withValue(card) {
      let device = try AudioDevice(opening: AudioNode(card: 0, device: 0))
      #expect(try device.configure(Self.settings) == Self.settings)
      try device.start()
      try body(device)
    }
  }

  private func card(_ configure: (inout FakeAudioCard.Description) -> Void) -> FakeAudioCard {
    var description = FakeAudioCard.Description()
    configure(&description)
    return FakeAudioCard(description)
  }

  /// Reads the available samples of a device with one 16-bit channel.
  private func read(_ device: borrowing AudioDevice, _ count: Int) throws -> [Int16] {
    var samples = [Int16](repeating: 0, count: count)
    let read = try samples.withUnsafeMutableBytes { memory in
      let (read, loss) = try device.read(into: #require(memory.baseAddress), count: count)
      #expect(loss == nil)
      return read
    }
    return Array(samples.prefix(read))
  }

  @Test func `A period of audio has the timestamp of its last sample`() throws {
    let card = card { $0.wave = { sample, _ in Double(sample % 100) / 128 } }
    try withDevice(card) { device in
      let arrival = try device.wait(milliseconds: 100)
      #expect(
        arrival
          == .samples(available: 480, nanoseconds: card.nanoseconds(ofSample: 480, rate: 48_000)))
      let samples = try read(device, 480)
      #expect(samples.count == 480 && samples[0] == samples[100] && samples[1] > samples[0])
    }
    #expect(!card.isOpen)
  }

  @Test func `An audio device can be restarted after an overrun`() throws {
    try withDevice(card { $0.faults = [.init(at: 480, .overrun(lost: 9_600))] }) { device in
      #expect(try device.wait(milliseconds: 100) != .overrun)
      #expect(try device.wait(milliseconds: 100) == .overrun)
      try device.start(.recover)
      guard case .samples(480, _) = try device.wait(milliseconds: 100) else {
        Issue.record("no period follows the overrun")
        return
      }
    }
  }

  @Test func `A suspended audio device resumes after repeated attempts`() throws {
    try withDevice(card { $0.faults = [.init(at: 0, .suspend(lost: 480))] }) { device in
      #expect(try device.wait(milliseconds: 100) == .suspended)
      var attempts = 1
      while try !device.resume() { attempts += 1 }
      #expect(attempts == 3)
      #expect(try device.wait(milliseconds: 100) != .suspended)
    }
  }

  @Test(arguments: [FakeAudioCard.Fault.Kind.unplug, .unplugWhileWaiting])
  func `Waiting for audio from an unplugged card fails as unplugged`(
    kind: FakeAudioCard.Fault.Kind
  ) throws {
    try withDevice(card { $0.faults = [.init(at: 0, kind)] }) { device in
      var found: CallFailure?
      do throws(CallFailure) { _ = try device.wait(milliseconds: 100) } catch { found = error }
      #expect(found?.kind == .unplugged && found?.operation == AudioOperation.wait.rawValue)
    }
  }

  @Test(arguments: [
    (EACCES, CallFailure.Kind.noPermission), (EPERM, .noPermission), (ENOENT, .notFound),
    (ENODEV, .notFound), (EBUSY, .busy), (EAGAIN, .busy), (ENOMEM, .outOfMemory),
    (EMFILE, .tooManyFiles), (EINVAL, .notSupported), (EIO, .other),
  ])
  func `The errno of a failed device open gives the error reason`(
    code: CInt, kind: CallFailure.Kind
  ) {
    let card = card { $0.openResult = -code }
    var found: CallFailure?
    ALSASystem.$calls.withValue(card) {
      do throws(CallFailure) { _ = try AudioDevice(opening: AudioNode(card: 0, device: 0)) } catch {
        found = error
      }
    }
    #expect(found?.kind == kind && found?.subject == "hw:0,0" && found?.number == code)
  }
}
