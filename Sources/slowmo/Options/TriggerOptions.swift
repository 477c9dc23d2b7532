// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank

/// A trigger source of `--trigger`: `signal`, `key`, `udp:PORT`, `audio:-12dBFS` or `motion`.
enum TriggerKind: Hashable, Sendable, ExpressibleByArgument {
  case signal
  case key
  /// A UDP datagram to an address and port of this machine.
  case udp(host: String, port: UInt16)
  /// An audio level at or above a threshold in dBFS.
  case audio(threshold: Double)
  /// A change in the image.
  ///
  /// `share` is the fraction of the image that must change, from 0 to 1.
  case motion(share: Double)

  init?(argument: String) {
    let pieces = argument.split(separator: ":", maxSplits: 1).map(String.init)
    switch (pieces.first, pieces.count > 1 ? pieces[1] : nil) {
    case ("signal", nil): self = .signal
    case ("key", nil): self = .key
    case ("udp", let position?):
      // An IPv6 address in brackets contains colons, so the port starts after the last colon.
      let colon = position.lastIndex(of: ":")
      let host = colon.map { String(position[..<$0]) } ?? Self.loopback
      let digits = colon.map { position[position.index(after: $0)...] } ?? position[...]
      guard let port = UInt16(digits), port > 0, !host.isEmpty else { return nil }
      self = .udp(host: host.filter { $0 != "[" && $0 != "]" }, port: port)
    case ("motion", nil): self = .motion(share: MotionTrigger().share)
    case ("motion", let share?):
      guard let share = Double(percentage: share) else { return nil }
      self = .motion(share: share)
    case ("audio", let level?):
      let number = level.hasSuffix("dBFS") ? level.dropLast(4) : level[...]
      guard let threshold = Double(number), threshold.isFinite, threshold <= 0 else { return nil }
      self = .audio(threshold: threshold)
    default: return nil
    }
  }

  /// The trigger as text, for the message while the capture waits.
  var summary: String {
    switch self {
    case .signal: "SIGUSR1 (kill -USR1 \(getpid()))"
    case .key: "Enter"
    case .udp(let host, let port): "a datagram to \(host) port \(port)"
    case .audio(let threshold): "audio at \(threshold) dBFS"
    case .motion(let share): "motion in \(share * 100)% of the image"
    }
  }

  /// The default address for datagrams.
  ///
  /// Only programs on this machine can send to it.
  static let loopback = "127.0.0.1"
}

/// The options of `record` that record clips around triggers.
struct TriggerOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: "Include this much time before the trigger, kept in memory. Default: 0s.",
    transform: durationOrZero)
  var pre: MediaTime?

  @Option(
    parsing: .unconditional,
    help: "Continue for this long after the trigger. Default: 2s.", transform: durationOrZero)
  var post: MediaTime?

  @Option(
    help: ArgumentHelp(
      "Record a clip at a signal (SIGUSR1), key (Enter), udp:[ADDRESS:]PORT, audio:-12dBFS or motion.",
      valueName: "signal|key|udp:PORT|audio:-12dBFS|motion"))
  var trigger: [TriggerKind] = []

  @Flag(
    help: """
      Ignore triggers until memory holds the time of --pre. -t then counts from there.
      """)
  var armWhenFull = false

  @Flag(help: "Wait for the next trigger after each clip; FILE is a template: swing_{n:03}.mov.")
  var `repeat` = false

  @Option(help: "Stop after this many clips; needs --repeat.")
  var maxClips: Int?

  @Option(
    parsing: .unconditional,
    help: """
      Ignore triggers for this long after a trigger (default: the length of a clip). Audio and \
      motion triggers also need this much quiet before them (default: 1s).
      """,
    transform: durationOrZero)
  var quietPeriod: MediaTime?

  @Option(
    help: "Also write a replay of each clip at this speed, such as 1/8, in a .replay.mp4 file.",
    transform: Speed.init(parsing:))
  var replay: Speed?

  @Option(
    help: """
      Run this shell command after each clip. {path} is the file, quoted for you, {trigger} the time \
      of its trigger in seconds, and {replay} its replay.
      """)
  var exec: String?

  /// Whether `--trigger` is given.
  var isTriggered: Bool { !trigger.isEmpty }

  func validate() throws {
    let lone = [
      ("--pre", pre != nil), ("--post", post != nil), ("--replay", replay != nil),
      ("--repeat", self.repeat), ("--arm-when-full", armWhenFull),
      ("--quiet-period", quietPeriod != nil), ("--max-clips", maxClips != nil),
    ].first { $0.1 }
    if let lone, trigger.isEmpty {
      throw ValidationError(
        "\(lone.0) needs a --trigger: signal, key, udp:PORT, audio:-12dBFS or motion")
    }
    if let maxClips {
      guard maxClips > 0 else { throw ValidationError("--max-clips \(maxClips) is not above zero") }
      guard self.repeat else {
        throw ValidationError("--max-clips needs --repeat: without --repeat one clip is recorded")
      }
    }
  }

  /// Returns the library's settings for these options.
  func settings() -> TriggerSettings {
    var settings = TriggerSettings(
      preDuration: pre ?? .zero, postDuration: post ?? MediaTime(seconds: 2))
    settings.repeats = self.repeat
    settings.armsWhenFull = armWhenFull
    settings.quietPeriod = quietPeriod
    settings.maximumClipCount = maxClips
    let quiet = quietPeriod ?? MediaTime(seconds: 1)
    for kind in trigger.reversed() {
      switch kind {
      case .audio(let threshold):
        settings.audio = AudioTrigger(threshold: threshold, quietPeriod: quiet)
      case .motion(let share): settings.motion = MotionTrigger(share: share, quietPeriod: quiet)
      case .signal, .key, .udp: break
      }
    }
    return settings
  }
}

/// Parses a duration of zero or more.
@Sendable func durationOrZero(_ text: String) throws -> MediaTime {
  let duration = try MediaTime(parsing: text)
  guard duration >= .zero else {
    throw MediaError(.notPositive, "the duration \(text) is negative")
  }
  return duration
}
