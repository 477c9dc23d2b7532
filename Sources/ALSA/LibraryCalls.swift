// SPDX-License-Identifier: Apache-2.0

import CALSA
import Glibc
import OvercrankLinuxSystem

/// The ALSA library (libasound).
package enum AudioLibrary {
  /// The version of the loaded libasound.
  package static var version: String { String(cString: snd_asoundlib_version()) }
}

/// ALSA calls through libasound.
package struct LibraryCalls: ALSACalls {
  package let nodeDirectory: String

  /// - Parameter nodeDirectory: The directory to use instead of `/dev/snd`.
  package init(nodeDirectory: String = "/dev/snd") { self.nodeDirectory = nodeDirectory }

  package func nodes() -> [String] { SystemFiles.entries(in: nodeDirectory) }

  package func describe(_ node: AudioNode, _ description: inout AudioDescription) -> CInt {
    _ = Self.silencedLibrary
    var control: OpaquePointer?
    var result = snd_ctl_open(&control, "hw:\(node.card)", 0)
    guard result >= 0, let control else { return withPermission(result, node) }
    defer { snd_ctl_close(control) }
    var card: OpaquePointer?
    var device: OpaquePointer?
    defer {
      snd_ctl_card_info_free(card)
      snd_pcm_info_free(device)
    }
    guard snd_ctl_card_info_malloc(&card) >= 0, let card, snd_pcm_info_malloc(&device) >= 0,
      let device
    else { return -ENOMEM }
    result = snd_ctl_card_info(control, card)
    guard result >= 0 else { return result }
    snd_pcm_info_set_device(device, node.device)
    snd_pcm_info_set_subdevice(device, 0)
    snd_pcm_info_set_stream(device, SND_PCM_STREAM_CAPTURE)
    result = snd_ctl_pcm_info(control, device)
    guard result >= 0 else { return result }
    description = AudioDescription(
      cardID: Self.text(snd_ctl_card_info_get_id(card)),
      cardName: Self.text(snd_ctl_card_info_get_name(card)),
      driver: Self.text(snd_ctl_card_info_get_driver(card)),
      deviceName: Self.text(snd_pcm_info_get_name(device)))
    return 0
  }

  package func open(_ name: String, _ handle: inout AudioHandle) -> CInt {
    _ = Self.silencedLibrary
    var pcm: OpaquePointer?
    let result = snd_pcm_open(&pcm, name, SND_PCM_STREAM_CAPTURE, CInt(SND_PCM_NONBLOCK))
    handle = AudioHandle(bits: UInt(bitPattern: pcm))
    return AudioNode(hardwareName: name).map { withPermission(result, $0) } ?? result
  }

  /// Returns `EACCES` instead of "not found" if this user may not open the control node.
  ///
  /// libasound does not distinguish the two cases.
  private func withPermission(_ result: CInt, _ node: AudioNode) -> CInt {
    guard result == -ENOENT || result == -ENODEV || result == -ENXIO else { return result }
    return SystemFiles.isForbidden("\(nodeDirectory)/\(node.controlName)") ? -EACCES : result
  }

  package func close(_ handle: AudioHandle) { snd_pcm_close(handle.pcm) }

  package func abilities(
    _ handle: AudioHandle, _ choice: AudioChoice, _ abilities: inout AudioAbilities
  ) -> CInt {
    var answer = AudioAbilities()
    let result = Self.withHardwareParameters { parameters in
      var result = snd_pcm_hw_params_any(handle.pcm, parameters)
      if result >= 0 { result = Self.choose(choice, handle, parameters) }
      guard result >= 0 else { return result }
      answer.layouts = SampleLayout.allCases.filter {
        snd_pcm_hw_params_test_format(handle.pcm, parameters, $0.format) == 0
      }
      var (fewest, most): (CUnsignedInt, CUnsignedInt) = (0, 0)
      result = snd_pcm_hw_params_get_channels_min(parameters, &fewest)
      if result >= 0 { result = snd_pcm_hw_params_get_channels_max(parameters, &most) }
      guard result >= 0 else { return result }
      // Devices without a limit on the number of channels report 10000 or 2^32 - 1, so the greatest
      // number of channels is limited to 64.
      answer.channelCounts = Int(max(1, fewest))...Int(max(1, fewest, min(most, 64)))
      answer.rates = AudioAbilities.usualRates.filter {
        snd_pcm_hw_params_test_rate(handle.pcm, parameters, CUnsignedInt($0), 0) == 0
      }
      return 0
    }
    abilities = answer
    return result
  }

  package func configure(_ handle: AudioHandle, _ settings: inout AudioSettings) -> CInt {
    var granted = settings
    var result = Self.withHardwareParameters { parameters in
      var result = snd_pcm_hw_params_any(handle.pcm, parameters)
      let choice = AudioChoice(layout: granted.layout, channelCount: granted.channelCount)
      if result >= 0 { result = Self.choose(choice, handle, parameters) }
      if result >= 0 {
        result = snd_pcm_hw_params_set_rate(
          handle.pcm, parameters, CUnsignedInt(clamping: granted.rate), 0)
      }
      var direction: CInt = 0
      var period = snd_pcm_uframes_t(clamping: granted.periodSize)
      var buffer = snd_pcm_uframes_t(clamping: granted.bufferSize)
      if result >= 0 {
        result = snd_pcm_hw_params_set_period_size_near(
          handle.pcm, parameters, &period, &direction)
      }
      if result >= 0 {
        result = snd_pcm_hw_params_set_buffer_size_near(handle.pcm, parameters, &buffer)
      }
      if result >= 0 { result = snd_pcm_hw_params(handle.pcm, parameters) }
      if result >= 0 {
        result = snd_pcm_hw_params_get_period_size(parameters, &period, &direction)
      }
      if result >= 0 { result = snd_pcm_hw_params_get_buffer_size(parameters, &buffer) }
      granted.periodSize = Int(clamping: period)
      granted.bufferSize = Int(clamping: buffer)
      return result
    }
    if result >= 0 { result = Self.setSoftware(handle, granted) }
    settings = granted
    return result
  }

  /// Sets the software parameters of a stream: timestamps from CLOCK_MONOTONIC, a wakeup for each
  /// period, and a stop on overrun.
  private static func setSoftware(_ handle: AudioHandle, _ settings: AudioSettings) -> CInt {
    var parameters: OpaquePointer?
    guard snd_pcm_sw_params_malloc(&parameters) >= 0, let parameters else { return -ENOMEM }
    defer { snd_pcm_sw_params_free(parameters) }
    let pcm = handle.pcm
    var result = snd_pcm_sw_params_current(pcm, parameters)
    if result >= 0 {
      result = snd_pcm_sw_params_set_tstamp_mode(pcm, parameters, SND_PCM_TSTAMP_ENABLE)
    }
    if result >= 0 {
      result = snd_pcm_sw_params_set_tstamp_type(
        pcm, parameters, SND_PCM_TSTAMP_TYPE_MONOTONIC)
    }
    if result >= 0 {
      result = snd_pcm_sw_params_set_avail_min(
        pcm, parameters, snd_pcm_uframes_t(clamping: settings.periodSize))
    }
    if result >= 0 {
      result = snd_pcm_sw_params_set_stop_threshold(
        pcm, parameters, snd_pcm_uframes_t(clamping: settings.bufferSize))
    }
    return result < 0 ? result : snd_pcm_sw_params(pcm, parameters)
  }

  package func prepare(_ handle: AudioHandle) -> CInt { snd_pcm_prepare(handle.pcm) }

  package func start(_ handle: AudioHandle) -> CInt { snd_pcm_start(handle.pcm) }

  package func resume(_ handle: AudioHandle) -> CInt { snd_pcm_resume(handle.pcm) }

  package func drop(_ handle: AudioHandle) -> CInt { snd_pcm_drop(handle.pcm) }

  package func wait(_ handle: AudioHandle, milliseconds: CInt) -> CInt {
    snd_pcm_wait(handle.pcm, milliseconds)
  }

  package func timestamp(
    _ handle: AudioHandle, available: inout Int, nanoseconds: inout Int64
  ) -> CInt {
    var (count, time) = (snd_pcm_uframes_t(0), timespec())
    // This call updates the hardware position and reports whether the stream overran or was
    // suspended.
    let update = snd_pcm_avail_update(handle.pcm)
    guard update >= 0 else { return CInt(clamping: update) }
    let result = snd_pcm_htimestamp(handle.pcm, &count, &time)
    available = Int(clamping: count)
    nanoseconds = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    return result
  }

  package func read(_ handle: AudioHandle, into memory: UnsafeMutableRawPointer, count: Int) -> Int
  {
    snd_pcm_readi(handle.pcm, memory, snd_pcm_uframes_t(clamping: count))
  }

  package func nanoseconds() -> Int64 { MonotonicClock.nanoseconds() }

  /// Keeps libasound from printing messages to stderr.
  ///
  /// The first access to this property silences the library for the whole process.
  static let silencedLibrary: Void = CALSA_silence()

  private static func text(_ text: UnsafePointer<CChar>?) -> String {
    text.map { String(cString: $0) } ?? ""
  }

  private static func withHardwareParameters(_ body: (OpaquePointer) -> CInt) -> CInt {
    var parameters: OpaquePointer?
    guard snd_pcm_hw_params_malloc(&parameters) >= 0, let parameters else { return -ENOMEM }
    defer { snd_pcm_hw_params_free(parameters) }
    return body(parameters)
  }

  private static func choose(
    _ choice: AudioChoice, _ handle: AudioHandle, _ parameters: OpaquePointer
  ) -> CInt {
    var result = snd_pcm_hw_params_set_access(
      handle.pcm, parameters, SND_PCM_ACCESS_RW_INTERLEAVED)
    if result >= 0, let layout = choice.layout {
      result = snd_pcm_hw_params_set_format(handle.pcm, parameters, layout.format)
    }
    if result >= 0, let count = choice.channelCount {
      result = snd_pcm_hw_params_set_channels(
        handle.pcm, parameters, CUnsignedInt(clamping: count))
    }
    return result
  }
}

extension AudioHandle {
  /// The handle as libasound's pointer.
  var pcm: OpaquePointer? { OpaquePointer(bitPattern: bits) }
}

extension SampleLayout {
  fileprivate var format: snd_pcm_format_t {
    switch self {
    case .s16: SND_PCM_FORMAT_S16_LE
    case .s24: SND_PCM_FORMAT_S24_LE
    case .s24Packed: SND_PCM_FORMAT_S24_3LE
    case .s32: SND_PCM_FORMAT_S32_LE
    case .float: SND_PCM_FORMAT_FLOAT_LE
    }
  }
}
