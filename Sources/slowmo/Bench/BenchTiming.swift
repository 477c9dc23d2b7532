// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// Another program that a benchmark runs for comparison.
enum BenchBaseline: String, CaseIterable, ExpressibleByArgument {
  case ffmpeg
}

/// The options of the benchmarks that time whole commands.
struct BenchTimingOptions: ParsableArguments {
  @Option(help: "Run each command this often, from 1 to 100.")
  var runs = 5

  @Option(help: "Also time this program, in turn with slowmo: ffmpeg.")
  var baseline: BenchBaseline?

  @OptionGroup var parent: BenchDirectoryOptions

  func validate() throws {
    guard (1...100).contains(runs) else { throw ValidationError("--runs is from 1 to 100") }
  }
}

/// The options for the clip that a benchmark works on.
struct BenchSourceOptions: ParsableArguments {
  @Option(
    help: "The mode of the clip, as [WxH][@rate][/fourcc].", completion: Completions.mode,
    transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional,
    help: "The duration of the clip. Default: 5 s.", transform: positiveDuration)
  var duration: MediaTime?

  func check(_ file: String?) throws {
    if file != nil, mode != nil || duration != nil {
      throw ValidationError("--mode and -t describe a clip of the synthetic camera; omit FILE")
    }
  }
}

/// A benchmark that times commands on the same input, in a temporary directory.
final class BenchTiming {
  /// The commands to time.
  struct Commands {
    /// The arguments of this program, without `-o` and the output.
    let slowmo: [String]
    /// The arguments of ffmpeg, without the output.
    let ffmpeg: [String]
    /// The extension of the output file.
    let container: String
  }

  private let options: BenchTimingOptions
  /// The path of the temporary directory, which is removed on `deinit`.
  private let directory: String

  /// Creates the temporary directory.
  ///
  /// - Throws: `CommandError` if the directory cannot be created.
  init(_ options: BenchTimingOptions) throws {
    self.options = options
    var name = "\(options.parent.path)/slowmo-bench-XXXXXX".systemPath
    guard mkdtemp(&name) != nil else {
      throw CommandError(
        .cannotCreate, code: "cannot_create",
        "could not create a directory in \(options.parent.path): \(String(cString: strerror(errno)))",
        hint: "choose another directory: --folder")
    }
    let directory = String(systemPath: name)
    self.directory = directory
    Interrupt.beforeForcedExit { try? FileManager.default.removeItem(atPath: directory) }
  }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  /// Returns the path of the clip to work on: the given file, or a clip that the synthetic camera
  /// records.
  func source(
    _ file: String?, _ options: BenchSourceOptions, mode: String
  ) throws -> (path: String, asset: Asset) {
    if let file {
      let asset = try Asset(path: file)
      // A name that begins with a hyphen would be taken as an option by the commands.
      let start = file.hasPrefix("/") ? "" : FileManager.default.currentDirectoryPath + "/"
      return (start + file, asset)
    }
    let camera = try CaptureDevice.named("synthetic")
    let format = try camera.format(matching: options.mode ?? ModeRequest(parsing: mode))
    let path = "\(directory)/clip.mov"
    _ = try runSlowmo([
      "record", "synthetic?pace=max", "--mode", format.id, "-t",
      (options.duration ?? MediaTime(seconds: 5)).secondsText, "-o", path,
    ])
    return (path, try Asset(path: path))
  }

  /// Runs the commands in turn, and returns the report.
  func report(_ benchmark: String, _ mode: String, _ commands: Commands) throws -> TimingBenchReport
  {
    var costs: [CommandCost] = []
    var baselineCosts: [CommandCost] = []
    let output = "\(directory)/slowmo.\(commands.container)"
    let baselineOutput = "\(directory)/ffmpeg.\(commands.container)"
    var result = CommandResult()
    for _ in 0..<options.runs {
      let run = try runSlowmo(commands.slowmo + ["-o", output, "-y"])
      costs.append(run.cost)
      result = run.result
      guard options.baseline != nil else { continue }
      baselineCosts.append(
        try runFFmpeg(["-v", "error", "-nostdin", "-y"] + commands.ffmpeg + [baselineOutput]).cost)
    }
    let version = try options.baseline.map { _ in try runFFmpeg(["-version"]).output }
    let asset = try Asset(path: output)
    return TimingBenchReport(
      benchmark: benchmark, mode: mode, costs: costs, result: result, asset: asset,
      byteCount: try RandomAccessFile(opening: output, forWriting: false).count(),
      baseline: version.map { version in
        TimingBenchReport.Baseline(
          version: version.split(separator: " ").dropFirst(2).first.map(String.init) ?? "",
          frames: (try? Asset(path: baselineOutput))?.videoTrack?.frameCount,
          costs: baselineCosts, beside: costs)
      })
  }

  /// Runs a command of this program.
  ///
  /// - Throws: The error of the command. The message names the directory that the user chose
  ///   instead of the temporary one.
  private func runSlowmo(
    _ arguments: [String]
  ) throws -> (cost: CommandCost, result: CommandResult) {
    let run = try TimedProgram.slowmo.run(arguments + ["--json"])
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let result = try? decoder.decode(CommandResult.self, from: Data(run.output.utf8))
    if let error = result?.error {
      throw CommandError(
        run.status.flatMap(ExitStatus.init) ?? .internalError, code: error.code,
        error.message.replacing(directory, with: options.parent.path),
        hint: error.code == "disk_full"
          ? "choose a directory with more free space: --folder" : error.hint)
    }
    guard run.status == 0, let result else { throw Self.failure("slowmo", run) }
    return (run.cost, result)
  }

  /// Runs ffmpeg.
  private func runFFmpeg(_ arguments: [String]) throws -> TimedResult {
    let run: TimedResult
    do { run = try TimedProgram.ffmpeg.run(arguments) } catch let error as CommandError {
      throw error
    } catch {
      throw CommandError(
        .unavailable, code: "program_not_found", "could not start ffmpeg: \(error)",
        hint: "install the package ffmpeg, or omit --baseline")
    }
    guard run.status == 0 else { throw Self.failure("ffmpeg", run) }
    return run
  }

  private static func failure(_ program: String, _ run: TimedResult) -> CommandError {
    let reason = run.status.map { "exit code \($0)" } ?? "a signal"
    let line = run.errors.split(whereSeparator: \.isNewline).last.map { ": \($0)" } ?? ""
    return CommandError(
      .unavailable, code: "program_failed", "\(program) ended with \(reason)\(line)",
      hint: "choose another source or mode")
  }
}

/// The values that a benchmark reads from a command's JSON document.
struct CommandResult: Decodable {
  struct Failure: Decodable {
    let code, message, hint: String
  }

  struct Ledger: Decodable {
    let expected, stored: Int64
  }

  struct Audio: Decodable {
    let samples: Int64
  }

  var error: Failure?
  var ledger: Ledger?
  var audio: Audio?
}

extension Asset {
  /// The size, frame rate, format and duration of the movie; only reports that agree in these are
  /// comparable.
  var benchMode: String {
    let video = videoTrack.map { track in
      let rest = ModeRequest(rate: track.nominalFrameRate, fourcc: track.codec.rawValue)
      return "\(track.width)x\(track.height)\(rest)"
    }
    return "\(video ?? "no video"), \(duration.displayText) s"
  }
}

/// The figures of a benchmark that times whole commands.
struct TimingBenchReport: BenchReport {
  /// The median, minimum and maximum of a time over all runs, in nanoseconds.
  struct Spread: Encodable {
    let medianNs, minNs, maxNs: Int64

    /// For an even number of values, the median is the lower of the two middle values.
    init(_ values: [Int64]) {
      let sorted = values.sorted()
      (minNs, maxNs) = (sorted.first ?? 0, sorted.last ?? 0)
      medianNs = sorted.isEmpty ? 0 : sorted[(sorted.count - 1) / 2]
    }

    var text: String {
      func milliseconds(_ value: Int64) -> String { decimal(Double(value) / 1e6, 1) }
      return "\(milliseconds(medianNs)) ms (\(milliseconds(minNs)) to \(milliseconds(maxNs)))"
    }
  }

  /// The figures of the program that ran for comparison.
  struct Baseline: Encodable {
    let name = BenchBaseline.ffmpeg.rawValue
    let version: String
    /// The number of frames in the program's output; nil if the output has only audio.
    let frames: Int?
    let wall, cpu: Spread
    /// The median wall time and CPU time of this program, each divided by that of the other
    /// program.
    let wallRatio, cpuRatio: Double

    enum CodingKeys: CodingKey { case name, version, frames, wall, cpu, wallRatio, cpuRatio }

    init(version: String, frames: Int?, costs: [CommandCost], beside own: [CommandCost]) {
      func ratio(_ time: (CommandCost) -> Int64) -> Double {
        Double(Spread(own.map(time)).medianNs) / Double(max(1, Spread(costs.map(time)).medianNs))
      }
      (self.version, self.frames) = (version, frames)
      wall = Spread(costs.map(\.wallNanoseconds))
      cpu = Spread(costs.map(\.processorNanoseconds))
      wallRatio = ratio(\.wallNanoseconds)
      cpuRatio = ratio(\.processorNanoseconds)
    }
  }

  /// The name of the benchmark.
  let benchmark: String
  /// The clip, the speed and the kind of export.
  let mode: String
  let runs: Int
  /// The number of frames in the output.
  let frames: Int
  /// The number of lost frames; nil for an export.
  let drops: Int64?
  /// The number of audio samples per channel in the output; nil without audio.
  let samples: Int64?
  let bytes: Int64
  let wall, cpu: Spread
  let baseline: Baseline?

  init(
    benchmark: String, mode: String, costs: [CommandCost], result: CommandResult, asset: Asset,
    byteCount: Int64, baseline: Baseline?
  ) {
    (self.benchmark, self.mode) = (benchmark, mode)
    runs = costs.count
    frames = asset.videoTrack?.frameCount ?? 0
    drops = result.ledger.map { $0.expected - $0.stored }
    samples = result.audio?.samples
    bytes = byteCount
    wall = Spread(costs.map(\.wallNanoseconds))
    cpu = Spread(costs.map(\.processorNanoseconds))
    self.baseline = baseline
  }

  var lines: [String] {
    let counts =
      ["\(frames) frames"] + (drops.map { ["\($0) lost"] } ?? [])
      + (samples.map { ["\($0) audio samples"] } ?? []) + ["\(bytes) bytes"]
    let rate = Double(frames) * 1e9 / Double(max(1, wall.medianNs))
    var lines = [
      "\(benchmark): \(mode)", "written: \(counts.joined(separator: ", "))",
      "time of \(runs) runs: \(wall.text), \(decimal(rate, 0)) frames/s",
      "CPU time: \(cpu.text)",
    ]
    if let baseline {
      lines += [
        "\(baseline.name) \(baseline.version): \(baseline.wall.text), CPU time \(baseline.cpu.text)",
        "slowmo takes \(decimal(baseline.wallRatio, 2)) of its time and "
          + "\(decimal(baseline.cpuRatio, 2)) of its CPU time",
      ]
    }
    return lines
  }
}
