// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
package import OvercrankMediaCore
package import OvercrankV4L2

/// The input options in a device's name, such as `/dev/video0?input=3&timings=query`.
package struct InputChoice: Hashable, Sendable {
  /// The timings to set for the input.
  package enum Timings: Hashable, Sendable {
    /// The timings of the detected signal.
    case detected
    /// The timings at this index of the driver's list, from 0.
    case listed(Int)
    case computed(VideoTimings)
  }

  /// The number or the name of the input, or nil to keep the current input.
  package let input: String?
  /// The timings to set, or nil to keep the current timings.
  package let timings: Timings?
  /// The options as text, without the question mark.
  let text: String

  /// Separates the input options from the rest of a device's name.
  ///
  /// - Returns: The name without options, and the parsed options or nil.
  /// - Throws: `MediaError` with `.badName` for unknown or invalid options.
  static func split(
    _ name: String
  ) throws(MediaError) -> (name: String, choice: InputChoice?) {
    guard let question = name.lastIndex(of: "?"),
      // A file name may contain a question mark. If a file with the whole name exists, the name has
      // no options.
      SystemFiles.kind(of: name) == nil,
      let parts = try DeviceSpecifier(name, kind: String(name[..<question]))
    else { return (name, nil) }
    var input: String?
    var timings: Timings?
    for option in parts.options {
      switch option.key {
      case "input":
        guard !option.value.isEmpty else {
          throw parts.failure(
            "input= is empty", recovery: "write a number or a name: input=3")
        }
        input = option.value
      case "timings":
        guard let read = Timings(option.value) else {
          throw parts.failure("\"\(option.value)\" is not a timing", recovery: Timings.syntax)
        }
        timings = read
      default:
        throw parts.failure(
          "a video device has no option \"\(option.key)\"",
          recovery: "write input=3 or timings=query"
        )
      }
    }
    let text = String(name[name.index(after: question)...])
    return (
      String(name[..<question]), InputChoice(input: input, timings: timings, text: text)
    )
  }
}

extension InputChoice.Timings {
  fileprivate static let syntax = Recovery(
    "write timings=query, timings=index=3, or timings=cvt,width=640,height=480,fps=120 with "
      + "reduced-blanking=1 or 2 if wanted")

  /// Parses timings in the syntax of v4l2-ctl, or returns nil for invalid text.
  fileprivate init?(_ text: String) {
    if text == "query" {
      self = .detected
      return
    }
    var numbers: [String: Int] = [:]
    let fields = text.split(separator: ",", omittingEmptySubsequences: false)
    let isComputed = fields.first == "cvt"
    for word in fields.dropFirst(isComputed ? 1 : 0) {
      let parts = word.split(separator: "=", omittingEmptySubsequences: false)
      guard parts.count == 2, let number = UInt16(parts[1]), numbers[String(parts[0])] == nil
      else { return nil }
      numbers[String(parts[0])] = Int(number)
    }
    guard isComputed else {
      guard numbers.count == 1, let index = numbers["index"] else { return nil }
      self = .listed(index)
      return
    }
    let known: Set = ["width", "height", "fps", "reduced-blanking"]
    guard known.isSuperset(of: numbers.keys), let width = numbers["width"],
      let height = numbers["height"], let rate = numbers["fps"],
      let blanking = VideoTimings.Blanking(rawValue: numbers["reduced-blanking"] ?? 0),
      let timings = VideoTimings.cvt(
        width: width, height: height, framesPerSecond: rate, blanking: blanking)
    else { return nil }
    self = .computed(timings)
  }
}

extension CaptureDevice {
  /// Opens the device node, and sets input and timings if the device's name selects them.
  ///
  /// Settings that are already in effect are not set again. Settings remain after the node is
  /// closed.
  ///
  /// - Throws: `MediaError` with `.deviceNotFound`, `.noPermission`, `.deviceBusy`, `.deviceLost`;
  ///   `.badName` for an input or timings that the device lacks; `.noSignal` if timings cannot be
  ///   detected.
  package func openNode(at path: String) throws(MediaError) -> VideoDevice {
    var refusal: MediaError?
    let device: VideoDevice
    do throws(CallFailure) {
      device = try open(path, &refusal)
    } catch {
      throw MediaError(error, at: .discovering)
    }
    if let refusal { throw refusal }
    return device
  }

  private func open(
    _ path: String, _ refusal: inout MediaError?
  ) throws(CallFailure) -> VideoDevice {
    var device = try VideoDevice(opening: path)
    refusal = try choice?.apply(to: &device)
    return device
  }
}

extension InputChoice {
  /// Applies the input options to the device.
  ///
  /// Returns an error if the device lacks the input or the timings, otherwise nil.
  fileprivate func apply(to device: inout VideoDevice) throws(CallFailure) -> MediaError? {
    if let input {
      let inputs = try device.inputs()
      guard let index = Self.index(of: input, among: inputs) else {
        let names = inputs.map { "\($0.index) (\($0.name))" }.joined(separator: ", ")
        return MediaError(
          .badName, "\(device.path) has no input \"\(input)\"",
          recovery: inputs.isEmpty
            ? "leave out input=: the device has one input" : "choose one of \(names)")
      }
      if try device.currentInput() != index { try device.setInput(index) }
    }
    guard let timings else { return nil }
    let wanted: DriverTimings
    switch timings {
    case .detected: wanted = try device.detectedTimings()
    case .computed(let computed): wanted = computed.driver
    case .listed(let position):
      let list = try device.listedTimings()
      guard list.indices.contains(position) else {
        return MediaError(
          .badName, "\(device.path) lists no timings with index=\(position)",
          recovery: list.isEmpty
            ? Recovery(
              "choose an input that has timings, such as HDMI", .listFormats(device: device.path))
            : "choose index=0 to index=\(list.count - 1)")
      }
      wanted = list[position]
    }
    if try device.timings() != wanted { _ = try device.setTimings(wanted) }
    return nil
  }

  /// The index of the input with a number or a name, or nil if there is none.
  ///
  /// A part of the input's name suffices if no other input's name contains that part.
  static func index(of text: String, among inputs: [DriverInput]) -> UInt32? {
    if let number = UInt32(text) { return inputs.first { $0.index == number }?.index }
    let name = text.lowercased()
    if let exact = inputs.first(where: { $0.name.lowercased() == name }) { return exact.index }
    let matches = inputs.filter { $0.name.lowercased().contains(name) }
    return matches.count == 1 ? matches.first?.index : nil
  }
}
