// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON object of the current input connector and its timings.
struct CurrentInputDocument: Encodable {
  private enum CodingKeys: CodingKey { case timings, detectedTimings, detectionProblem }

  private let input: InputConnector
  private let inputs: InputConnectors

  init?(_ inputs: InputConnectors) {
    guard let input = inputs.current else { return nil }
    self.input = input
    self.inputs = inputs
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
