// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank
import OvercrankLinuxSystem

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

      The file is written to --folder and then removed. A directory in memory, such as /dev/shm,
      keeps the speed of the disk out of the figures.

      MANUAL
      The synthetic camera draws its frames in this process. The CPU time of the process includes
      that work. The CPU times of the two threads do not.
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
    name: [.customShort("t"), .long], parsing: .unconditional, help: "Record for this long.",
    transform: positiveDuration)
  var duration: MediaTime?

  @Option(help: "Video codec: auto, copy, h264, mjpeg, ffv1 or raw.")
  var codec = VideoOutputSettings.automatic

  @Flag(help: "Find the highest rate without a lost frame, for the size and format of the mode.")
  var findLimit = false

  @OptionGroup var parent: BenchDirectoryOptions
  @OptionGroup var common: CommonOptions

  var endsReading: Bool { false }

  func perform() throws -> ExitStatus {
    let camera = try CaptureDevice.named(device)
    let run = try measure(camera, mode)
    var report = CaptureBenchReport(run)
    if findLimit { report.limitFps = try limit(camera, run.format)?.doubleValue }
    return try BenchDocument(report).print(common)
  }

  private func measure(_ camera: CaptureDevice, _ mode: ModeRequest?) throws -> BenchRun {
    let format =
      try mode.map { try camera.format(matching: $0, where: codec.suits) }
      ?? camera.fastestFormat(where: codec.suits)
    let path = "\(parent.path)/slowmo-bench-\(getpid()).mov"
    defer { unlink(path.systemPath) }
    do { return try measure(camera, format, path) } catch {
      // The user did not choose the name of the temporary file, so the message names only its
      // directory.
      var failure = CommandError(error)
      failure.message = failure.message.replacing(path, with: "the file in \(parent.path)")
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
      // If no frame was dropped at any tried rate and few rates remain, the highest rate is tried
      // next, because it will probably drop no frame either. This saves measurements.
      next = bad == rates.count && bad - good <= max(2, good / 5) ? bad - 1 : (good + bad) / 2
    }
    return good < 0 ? nil : rates[good]
  }

  /// Returns the frame rates that the device supports at the size and format of a mode, ascending.
  ///
  /// For a continuous range, these are the two limits and all whole rates between them.
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
}

/// The figures of `bench capture`.
struct CaptureBenchReport: BenchReport {
  struct Latency: Encodable {
    let p50, p99, p999, max: Duration
  }

  /// The name of the benchmark.
  let benchmark = "capture"
  let device: String
  let deviceKind: String
  let mode: String
  let codec: String
  let duration: MediaTime
  let measuredFps: Rational?
  let frames: Int64
  let drops: Int64
  let ledger: FrameLedger
  /// The time from dequeuing a driver buffer until it is queued again.
  let latency: Latency
  let cpuNsPerFrame: Int64
  let captureThreadNsPerFrame: Int64
  let writerThreadNsPerFrame: Int64
  let peakMemoryBytes: Int64?
  let memoryGrowthBytes: Int64?
  /// The highest frame rate at which no frame is lost.
  ///
  /// Measured only with `--find-limit`.
  var limitFps: Double?

  init(_ run: BenchRun) {
    let report = run.report
    let cost = report.cost
    let count = max(1, report.ledger.stored)
    device = run.device.address
    deviceKind = run.device.kind.rawValue
    mode = report.mode
    codec = report.codec?.rawValue ?? ""
    duration = report.duration
    measuredFps = report.measuredFrameRate
    frames = report.ledger.stored
    drops = report.ledger.dropped
    ledger = report.ledger
    latency = Latency(p50: cost.p50, p99: cost.p99, p999: cost.p999, max: cost.max)
    cpuNsPerFrame = run.processorNanoseconds / count
    captureThreadNsPerFrame = cost.captureThread.wholeNanoseconds / count
    writerThreadNsPerFrame = cost.writerThread.wholeNanoseconds / count
    peakMemoryBytes = run.memory.peak
    memoryGrowthBytes = run.memory.growth
  }

  /// The report as text lines.
  var lines: [String] {
    func microseconds(_ value: Int64) -> String { decimal(Double(value) / 1_000, 0) + " us" }
    func kept(_ time: Duration) -> String { microseconds(time.wholeNanoseconds) }
    func mebibytes(_ value: Int64?) -> String {
      value.map { decimal(Double($0) / 1_048_576, 1) + " MiB" } ?? "unknown"
    }
    var lines = [
      "\(device), \(mode), \(codec), \(decimal(duration.doubleValue, 3)) s",
      "frames: \(frames) stored, \(drops) lost, measured "
        + "\(measuredFps.map { decimal($0.doubleValue, 3) } ?? "unknown") fps",
      "driver buffer held: p50 \(kept(latency.p50)), "
        + "p99 \(kept(latency.p99)), p99.9 \(kept(latency.p999)), "
        + "longest \(kept(latency.max))",
      "CPU time per frame: \(microseconds(cpuNsPerFrame)) in total, capture thread "
        + "\(microseconds(captureThreadNsPerFrame)), writer \(microseconds(writerThreadNsPerFrame))",
      "memory: peak \(mebibytes(peakMemoryBytes)), growth \(mebibytes(memoryGrowthBytes))",
    ]
    if let limitFps { lines.append("highest rate without a lost frame: \(Int(limitFps)) fps") }
    return lines
  }
}
