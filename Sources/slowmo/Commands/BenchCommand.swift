// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// `slowmo bench`: what the work costs on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure what capturing costs on this machine.",
    discussion: """
      EXAMPLES
        slowmo bench capture synthetic:640x480@240 -t 0.5
        slowmo bench capture --mode 320x240@120/grey -t 0.5 --json

      Each benchmark has its own --help. Two reports are compared by: slowmo bench diff
      OLD.json NEW.json --fail-on 'drops>0'
      """,
    subcommands: [BenchCaptureCommand.self, BenchDiffCommand.self])
}

/// `slowmo bench capture [DEVICE]`: a take into a file that is thrown away, and what it cost.
struct BenchCaptureCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "capture",
    abstract: "Record for a while, and tell losses, latency, processor time and memory.",
    discussion: """
      EXAMPLES
        slowmo bench capture synthetic:640x480@240 -t 0.5
        slowmo bench capture synthetic --mode 320x240@120/grey -t 0.5 --codec raw
        slowmo bench capture synthetic --mode 320x240@120/mjpg -t 0.2 --find-limit

      The file is written to --folder and removed; one in memory (/dev/shm) keeps the disk out
      of the figures. The synthetic camera draws its pictures in this process: its work is in
      the processor time of the process, not in that of the two threads.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, a part of its id, synthetic or file:PATH.",
    completion: .file())
  var device = "synthetic"

  @Option(help: "The mode, as [WxH][@rate][/fourcc].", transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional, help: "How long to record.",
    transform: positiveDuration)
  var duration: MediaTime?

  @Option(help: "How to store pictures: auto, copy, h264, mjpeg, ffv1 or raw.")
  var codec = VideoOutputSettings.automatic

  @Option(
    help: "Where the file is written meanwhile; /dev/shm, or else the folder of TMPDIR.",
    completion: .directory)
  var folder: String?

  @Flag(help: "Find the highest rate without a loss, for the size and format of the mode.")
  var findLimit = false

  @OptionGroup var common: CommonOptions

  var endsReading: Bool { false }

  func perform() throws -> ExitStatus {
    let camera = try CaptureDevice.named(device)
    let run = try measure(camera, mode)
    var document = BenchDocument(run)
    if findLimit { document.limitFps = try limit(camera, run.format)?.doubleValue }
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return .done
  }

  /// Records once.
  private func measure(_ camera: CaptureDevice, _ mode: ModeRequest?) throws -> BenchRun {
    let format =
      try mode.map { try camera.format(matching: $0, where: codec.suits) }
      ?? camera.fastestFormat(where: codec.suits)
    let path = "\(scratchFolder)/slowmo-bench-\(getpid()).mov"
    defer { unlink(path.systemPath) }
    do { return try measure(camera, format, path) } catch {
      // Nobody chose that name.
      var failure = CommandError(error)
      failure.message = failure.message.replacing(path, with: "the file in \(scratchFolder)")
      if failure.code == "disk_full" { failure.hint = "name a folder with more room: --folder" }
      throw failure
    }
  }

  private func measure(
    _ camera: CaptureDevice, _ format: CaptureFormat, _ path: String
  ) throws -> BenchRun {
    var settings = RecordingSettings(path: path)
    settings.video = codec
    settings.overwrites = true
    settings.limit = CaptureLimit(duration: duration ?? MediaTime(seconds: 5))
    let session = try CaptureSession(device: camera, format: format)
    let movie = try MovieFileOutput(session: session, settings: settings)
    Interrupt.onFirst { movie.stop(.signal) }
    var memory = MemorySamples()
    let before = ProcessCost.now()
    let report = try withExtendedLifetime(session) {
      try movie.record { state in memory.note(at: state.duration.doubleValue) }
    }
    if let problem = report.problem { throw CommandError(problem) }
    return BenchRun(
      format: format, device: camera, report: report,
      processorNanoseconds: ProcessCost.now() - before, memory: memory)
  }

  /// The highest rate that loses nothing, by halving, to a twentieth; nil where even the slowest
  /// loses.
  private func limit(_ camera: CaptureDevice, _ format: CaptureFormat) throws -> FrameRate? {
    let rates = try rates(of: camera, format)
    var (good, bad) = (-1, rates.count)
    var next = rates.firstIndex { $0.doubleValue >= 240 } ?? rates.count / 2
    while bad - good > (bad == rates.count ? 1 : max(1, good / 20)), !Interrupt.isRequested {
      let mode = ModeRequest(format, at: rates[next])
      if try measure(camera, mode).report.ledger.dropped == 0 { good = next } else { bad = next }
      // The highest of all is tried, where all below it were taken.
      next = bad == rates.count && bad - good <= max(2, good / 5) ? bad - 1 : (good + bad) / 2
    }
    return good < 0 ? nil : rates[good]
  }

  /// The rates that the device has at the size and in the format of a mode, rising; the whole ones
  /// where it has all of a range.
  private func rates(of camera: CaptureDevice, _ format: CaptureFormat) throws -> [FrameRate] {
    let whole = (1...4_000).map { FrameRate($0) }
    if camera.kind == .synthetic {
      // It draws more than it lists.
      return whole.filter { rate in
        (try? camera.format(matching: ModeRequest(format, at: rate))) != nil
      }
    }
    let ranges = try camera.formats()
      .filter { ($0.fourcc, $0.width, $0.height) == (format.fourcc, format.width, format.height) }
      .map(\.frameRateRange)
    let between = whole.filter { rate in
      ranges.contains { $0.minFrameRate < rate && rate < $0.maxFrameRate }
    }
    return Set(ranges.flatMap { [$0.minFrameRate, $0.maxFrameRate] } + between).sorted()
  }

  private var scratchFolder: String {
    if let folder { return folder }
    if access("/dev/shm", W_OK) == 0 { return "/dev/shm" }
    return getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
  }
}

extension BenchDiffCommand {
  /// A limit such as `drops>0`.
  struct Limit {
    let key: String
    let isBroken: (Double) -> Bool
    let text: String

    init(parsing text: String) throws {
      let comparisons: [(String, (Double, Double) -> Bool)] = [
        (">=", (>=)), ("<=", (<=)), ("!=", (!=)), (">", (>)), ("<", (<)), ("=", (==)),
      ]
      for (sign, compare) in comparisons {
        let parts = text.split(separator: sign, maxSplits: 1).map { $0.filter { $0 != " " } }
        guard text.contains(sign), parts.count == 2, !parts[0].isEmpty,
          let number = Double(parts[1]),
          number.isFinite
        else { continue }
        key = parts[0]
        isBroken = { compare($0, number) }
        self.text = text
        return
      }
      throw ValidationError("\"\(text)\" is no limit; write one such as drops>0")
    }
  }
}

/// `slowmo bench diff OLD.json NEW.json`: what changed from one report to the next.
struct BenchDiffCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare two reports, and hold the newer to limits.",
    discussion: """
      EXAMPLES
        slowmo bench diff old.json new.json --fail-on 'drops>0'
        slowmo bench diff old.json new.json --fail-on 'latency.p99_ns>1e8'

      A limit is a number of the report, one of > >= < <= = != and a number; a limit that holds true
      of the newer report ends with exit code 10. Keys inside others have a path of points, whose
      last part will do where it is the only one. Reports of different modes are refused. Pipes
      are read, too: slowmo bench capture --json | slowmo bench diff old.json -
      """)

  @Argument(
    help: "The older report, as bench capture --json prints it; - is standard input.",
    completion: .file())
  var old: String

  @Argument(help: "The newer report; - is standard input.", completion: .file())
  var new: String

  @Option(
    help: "What the newer report must not be, such as drops>0; may be repeated.",
    transform: Limit.init(parsing:))
  var failOn: [Limit] = []

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if old == "-" && new == "-" {
      throw ValidationError("both reports are -: standard input holds one")
    }
  }

  func perform() throws -> ExitStatus {
    // Nothing is to be closed; who waits for the other end of a pipe must not wait for it.
    Interrupt.onFirst { _exit(Interrupt.status.rawValue) }
    let (old, new) = (try BenchFigures(path: self.old), try BenchFigures(path: self.new))
    try new.checkComparable(with: old)
    let broken = try failOn.filter { $0.isBroken(try new.number($0.key)) }.map(\.text)
    let document = BenchDiffDocument(old: old, new: new, broken: broken)
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return broken.isEmpty ? .done : .limitBroken
  }
}
