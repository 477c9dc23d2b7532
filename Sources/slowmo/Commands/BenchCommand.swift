// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// `slowmo bench`: measures the cost of capturing on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure the cost of capturing on this machine.",
    discussion: """
      EXAMPLES
        slowmo bench capture synthetic:640x480@240 -t 0.5
        slowmo bench capture --mode 320x240@120/grey -t 0.5 --json

      Each benchmark has its own --help. To compare two reports: slowmo bench diff OLD.json
      NEW.json --fail-on 'drops>0'
      """,
    subcommands: [BenchCaptureCommand.self, BenchDiffCommand.self])
}

/// `slowmo bench capture [DEVICE]`: records into a temporary file and reports the cost.
struct BenchCaptureCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "capture",
    abstract: "Record for a while and report losses, latency, CPU time and memory.",
    discussion: """
      EXAMPLES
        slowmo bench capture synthetic:640x480@240 -t 0.5
        slowmo bench capture synthetic --mode 320x240@120/grey -t 0.5 --codec raw
        slowmo bench capture synthetic --mode 320x240@120/mjpg -t 0.2 --find-limit

      The file is written to --folder and then removed. A directory in memory (/dev/shm) keeps
      the disk out of the figures. The synthetic camera draws its frames in this process: the CPU
      time of the process includes that work, the CPU times of the two threads do not.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: Completions.device)
  var device = "synthetic"

  @Option(
    help: "The mode, as [WxH][@rate][/fourcc].", completion: Completions.mode,
    transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional, help: "How long to record.",
    transform: positiveDuration)
  var duration: MediaTime?

  @Option(help: "Video codec: auto, copy, h264, mjpeg, ffv1 or raw.")
  var codec = VideoOutputSettings.automatic

  @Option(
    name: .customLong("folder"),
    help: "Directory for the temporary file. Default: /dev/shm, else TMPDIR.",
    completion: .directory)
  var directory: String?

  @Flag(help: "Find the highest rate without a lost frame, for the size and format of the mode.")
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

  private func measure(_ camera: CaptureDevice, _ mode: ModeRequest?) throws -> BenchRun {
    let format =
      try mode.map { try camera.format(matching: $0, where: codec.suits) }
      ?? camera.fastestFormat(where: codec.suits)
    let path = "\(scratchDirectory)/slowmo-bench-\(getpid()).mov"
    defer { unlink(path.systemPath) }
    do { return try measure(camera, format, path) } catch {
      // The user did not choose the temporary file name, so the message names the directory
      // instead.
      var failure = CommandError(error)
      failure.message = failure.message.replacing(path, with: "the file in \(scratchDirectory)")
      if failure.code == "disk_full" {
        failure.hint = "choose a directory with more free space: --folder"
      }
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
    let report = try movie.record { state in memory.note(at: state.duration.doubleValue) }
    if let problem = report.problem { throw CommandError(problem) }
    return BenchRun(
      format: format, device: camera, report: report,
      processorNanoseconds: ProcessCost.now() - before, memory: memory)
  }

  /// Finds the highest rate at which no frame is dropped, by bisection to within 5 %.
  ///
  /// Returns nil if frames are dropped even at the lowest rate.
  private func limit(_ camera: CaptureDevice, _ format: CaptureFormat) throws -> FrameRate? {
    let rates = try rates(of: camera, format)
    var (good, bad) = (-1, rates.count)
    var next = rates.firstIndex { $0.doubleValue >= 240 } ?? rates.count / 2
    while bad - good > (bad == rates.count ? 1 : max(1, good / 20)), !Interrupt.isRequested {
      let mode = ModeRequest(format, at: rates[next])
      if try measure(camera, mode).report.ledger.dropped == 0 { good = next } else { bad = next }
      // If every tried rate has passed and few rates remain, the highest rate is tried next,
      // because it will probably pass too. This saves measurements.
      next = bad == rates.count && bad - good <= max(2, good / 5) ? bad - 1 : (good + bad) / 2
    }
    return good < 0 ? nil : rates[good]
  }

  /// Returns the rates that the device supports at the size and format of a mode, ascending.
  ///
  /// A continuous range of rates contributes its two limits and all whole rates between them.
  private func rates(of camera: CaptureDevice, _ format: CaptureFormat) throws -> [FrameRate] {
    let whole = (1...4_000).map { FrameRate($0) }
    if camera.kind == .synthetic {
      // The synthetic camera lists only some of the rates that it accepts, so whole rates are
      // tried.
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

  private var scratchDirectory: String {
    if let directory { return directory }
    if access("/dev/shm", W_OK) == 0 { return "/dev/shm" }
    return getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
  }
}

extension BenchDiffCommand {
  /// A condition such as `drops>0`.
  ///
  /// The comparison fails if the new report meets the condition.
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
      throw ValidationError("\"\(text)\" is not a limit; write one such as drops>0")
    }
  }
}

/// `slowmo bench diff OLD.json NEW.json`: compares two reports.
struct BenchDiffCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare two reports and check the newer one against limits.",
    discussion: """
      EXAMPLES
        slowmo bench diff old.json new.json --fail-on 'drops>0'
        slowmo bench diff old.json new.json --fail-on 'latency.p99_ns>1e8'

      A limit is a key of the report, one of > >= < <= = != and a number. If a limit is true for
      the newer report, the exit code is 10. Nested keys are written as a path with dots; the last
      part alone is enough if it is unique. Reports of different modes are refused. A report can
      also come from a pipe: slowmo bench capture --json | slowmo bench diff old.json -
      """)

  @Argument(
    help: "The older report, from bench capture --json; - is standard input.",
    completion: .file())
  var old: String

  @Argument(help: "The newer report; - is standard input.", completion: .file())
  var new: String

  @Option(
    help: "Fail if this is true for the newer report, such as drops>0; may be repeated.",
    transform: Limit.init(parsing:))
  var failOn: [Limit] = []

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if old == "-" && new == "-" {
      throw ValidationError("both reports are -: standard input can supply only one")
    }
  }

  func perform() throws -> ExitStatus {
    // This verb writes no file, so Ctrl-C may exit at once. Otherwise a blocked read from a pipe
    // would delay the exit.
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
