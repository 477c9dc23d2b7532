// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo modes DEVICE`: lists the modes of a camera.
struct ModesCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "modes",
    abstract: "List a camera's modes: formats, sizes and frame rates.",
    discussion: """
      EXAMPLES
        slowmo modes synthetic
        slowmo modes synthetic --min-fps 120 --size 640x480
        slowmo modes synthetic --size 640x480 --fourcc mjpg --min-fps 240 --probe 0.1

      MANUAL
        slowmo modes synthetic --fourcc mjpg --json

      A device with several inputs lists the modes of the current one. '/dev/video0?input=3' selects
      another one, by its index or a part of its name.

      For an input such as HDMI, '/dev/video0?timings=query' sets the timings of the incoming
      signal. timings=index=3 or timings=cvt,width=640,height=480,fps=120 sets other ones. The
      device keeps its input and its timings.

      If the driver reports a range of sizes, only common sizes are listed. --size adds any other
      one.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: Completions.device)
  var device: String

  @Option(
    name: .customLong("min-fps"), help: "Only modes that reach this rate.",
    transform: FrameRate.init(parsing:))
  var minFPS: FrameRate?

  @Option(
    help: "Only modes of this size, such as 1280x720.", transform: ModeRequest.init(parsing:))
  var size: ModeRequest?

  @Option(
    help: "Only modes of this format, such as mjpg.",
    transform: { try ModeRequest(parsing: "/\($0)") })
  var fourcc: ModeRequest?

  @Option(
    help: "Stream each listed mode for this long, such as 2s, and report the measured rate.",
    transform: positiveDuration)
  var probe: MediaTime?

  @OptionGroup var common: CommonOptions

  struct Document: Encodable {
    struct Measured: Encodable {
      let fps: Rational?
      let jitter: Duration
      let dropped: Int64
      let timestampQuantum: Duration?

      init(_ measurement: RateMeasurement) {
        fps = measurement.frameRate
        jitter = measurement.jitter
        dropped = measurement.dropped
        timestampQuantum = measurement.timestampQuantum
      }
    }
    struct Mode: Encodable {
      let id: String
      let fourcc: String
      let compressed: Bool
      let width: Int
      let height: Int
      let minFrameDuration: String
      let maxFrameDuration: String
      let maxFps: String
      let maxFpsValue: Double
      let minFps: String
      let minFpsValue: Double
      let highFrameRate: Bool
      let measured: Measured?
      let frameDurationStep: String?
      let emulated: Bool
      let beyondSource: Bool
      let flickerFree: [Int]

      init(_ format: CaptureFormat, _ measurement: RateMeasurement?) {
        id = format.id
        fourcc = format.fourcc.description
        compressed = format.isCompressed
        width = format.width
        height = format.height
        minFrameDuration = format.minFrameDuration.seconds.description
        maxFrameDuration = format.maxFrameDuration.seconds.description
        maxFps = format.maxFrameRate.description
        maxFpsValue = format.maxFrameRate.doubleValue
        minFps = format.minFrameRate.description
        minFpsValue = format.minFrameRate.doubleValue
        highFrameRate = format.isHighFrameRate
        measured = measurement.map(Measured.init)
        frameDurationStep = format.frameRateRange.frameDurationStep?.seconds.description
        emulated = format.isEmulated
        beyondSource = format.exceedsSource
        flickerFree = format.flickerFreeMainsFrequencies
      }
    }
    let schema = schemaName("modes")
    let device: String
    let modes: [Mode]
    let fastest: String?
    let sizeRanges: [SizeRangeDocument]
    let input: CurrentInputDocument?
    let inputs: [InputConnector]

    enum CodingKeys: CodingKey {
      case schema, device, modes, fastest, sizeRanges, input, inputs
    }
  }

  var endsAtOnce: Bool { false }

  func perform() throws -> ExitStatus {
    let device = try CaptureDevice.named(self.device)
    let list = try device.formatList(including: size?.size)
    for warning in list.warnings { Output.warning("\(warning)") }
    let formats = list.formats.filter { format in
      minFPS.map { format.maxFrameRate >= $0 } ?? true
        && size.map { $0.matches(format) } ?? true
        && fourcc.map { $0.matches(format) } ?? true
    }
    let fastest = FormatSelection.fastest(among: formats)
    var measurements: [String: RateMeasurement] = [:]
    if let probe {
      for format in formats where !Interrupt.isRequested {
        measurements[format.id] = measure(device, format, for: probe)
      }
    }
    guard common.json else {
      for line in list.inputs.map(InputText.lines) ?? [] { Output.plain(line) }
      for format in formats {
        let measured = measurements[format.id].map { "  \(Self.text($0))" } ?? ""
        let mark =
          (format.id == fastest?.id ? "  (fastest)" : "")
          + (format.isEmulated ? "  (emulated)" : "")
          + (format.exceedsSource ? "  (larger than the input signal)" : "")
        Output.line("\(format.id)  \(format.maxFrameRate.doubleValue) fps\(measured)\(mark)")
      }
      return Interrupt.isRequested ? Interrupt.status : .done
    }
    try Output.document(
      Document(
        device: device.address,
        modes: formats.map { Document.Mode($0, measurements[$0.id]) }, fastest: fastest?.id,
        sizeRanges: list.sizeRanges.map(SizeRangeDocument.init),
        input: list.inputs.flatMap(CurrentInputDocument.init),
        inputs: list.inputs?.all ?? []))
    return Interrupt.isRequested ? Interrupt.status : .done
  }

  /// Measures a mode.
  ///
  /// If the mode does not stream, prints a warning and returns nil.
  private func measure(
    _ device: CaptureDevice, _ format: CaptureFormat, for duration: MediaTime
  ) -> RateMeasurement? {
    do {
      return try DeviceInput(device: device, format: format)
        .measure(for: duration, until: { Interrupt.isRequested })
    } catch {
      Output.warning("could not measure \(format.id): \(error)")
      return nil
    }
  }

  private static func text(_ measurement: RateMeasurement) -> String {
    let rate = measurement.frameRate.map { "\(($0.doubleValue * 1_000).rounded() / 1_000)" }
    let jitter = measurement.jitter.wholeNanoseconds / 1_000
    let step = measurement.timestampQuantum.map {
      ", timestamps in steps of \($0.wholeNanoseconds / 1_000) us"
    }
    return "measured \(rate ?? "no") fps, jitter \(jitter) us, \(measurement.dropped) dropped"
      + (step ?? "")
  }
}

/// The JSON object of the current input connector and its timings.
struct CurrentInputDocument: Encodable {
  private enum CodingKeys: CodingKey { case timings, detectedTimings, detectionProblem }

  private let input: InputConnector
  private let inputs: InputConnectors

  init?(_ inputs: InputConnectors) {
    guard let input = inputs.current else { return nil }
    (self.input, self.inputs) = (input, inputs)
  }

  func encode(to encoder: any Encoder) throws {
    try input.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(inputs.timings.map(TimingsDocument.init), forKey: .timings)
    try container.encodeIfPresent(
      inputs.detectedTimings.map(TimingsDocument.init), forKey: .detectedTimings)
    try container.encodeIfPresent(inputs.detectionProblem, forKey: .detectionProblem)
  }
}

/// The JSON object of digital video timings (DV timings).
struct TimingsDocument: Encodable {
  let width: Int
  let height: Int
  let interlaced: Bool
  let pixelClock: UInt64
  let totalWidth: Int
  let totalHeight: Int
  let fps: FrameRate?

  init(_ timings: VideoTimings) {
    width = timings.width
    height = timings.height
    interlaced = timings.isInterlaced
    pixelClock = timings.pixelClock
    totalWidth = timings.totalWidth
    totalHeight = timings.totalHeight
    fps = timings.frameRate
  }
}

/// The JSON object of a range of frame sizes.
struct SizeRangeDocument: Encodable {
  let fourcc: String
  let minWidth: Int
  let maxWidth: Int
  let stepWidth: Int
  let minHeight: Int
  let maxHeight: Int
  let stepHeight: Int

  init(_ range: FrameSizeRange) {
    fourcc = range.fourcc.description
    minWidth = range.smallest.width
    maxWidth = range.largest.width
    stepWidth = range.step.width
    minHeight = range.smallest.height
    maxHeight = range.largest.height
    stepHeight = range.step.height
  }
}

/// The text lines about a device's inputs.
///
/// The list is empty for a device with one input, without problems and without digital timings.
enum InputText {
  static func lines(_ inputs: InputConnectors) -> [String] {
    var lines: [String] = []
    if inputs.all.count > 1 {
      let names = inputs.all.map { "\($0.index) (\($0.name))" }.joined(separator: ", ")
      lines.append("slowmo: inputs: \(names)")
    }
    guard let input = inputs.current else { return lines }
    let problems = input.problems.map { $0.rawValue.replacing("_", with: " ") }
    if inputs.all.count > 1 || !problems.isEmpty {
      lines.append(
        "slowmo: current input: \(input.index) (\(input.name))"
          + (problems.isEmpty ? "" : ": " + problems.joined(separator: ", ")))
    }
    if let timings = inputs.timings { lines.append("slowmo: timings set to \(timings)") }
    if let detected = inputs.detectedTimings {
      lines.append("slowmo: timings detected: \(detected)")
    }
    if let problem = inputs.detectionProblem { lines.append("slowmo: \(problem)") }
    return lines
  }
}
