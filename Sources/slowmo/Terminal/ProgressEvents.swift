// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization

/// The events of `--progress json`: one JSON object per line on standard error.
///
/// Nothing else is then written to standard error.
enum ProgressEvents {
  struct Event: Encodable, Sendable {
    var event: String
    var frame: Int64?
    var totalFrames: Int64?
    var ptsNs: Int64?
    var fps: Double?
    var speed: Double?
    var drops: Int64?
    var bytes: Int64?
    var queueFill: Double?
    var peakDbfs: [Double]?
    var file: String?
    var message: String?
  }

  /// The `end` event, with the exit code and the error, if any.
  private struct End: Encodable {
    let event: Event
    let status: ExitStatus
    let error: ErrorDetails?

    enum CodingKeys: CodingKey { case status, error }

    func encode(to encoder: any Encoder) throws {
      try event.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(status.rawValue, forKey: .status)
      try container.encode(error, forKey: .error)
    }
  }

  private struct State {
    var isOn = false
    /// The totals for the `end` event.
    var last = Event(event: "end")
    var error: ErrorDetails?
  }

  private static let state = Mutex(State())

  /// Whether events are written instead of text.
  static var areOn: Bool { state.withLock { $0.isOn } }

  /// Turns events on if the arguments contain `--progress json`.
  ///
  /// Call this before the arguments are parsed, so that a parsing error is also reported as an
  /// event.
  static func enable(by arguments: [String]) {
    var isOn = false
    for (position, argument) in arguments.prefix(while: { $0 != "--" }).enumerated() {
      if argument.hasPrefix("--progress=") { isOn = argument == "--progress=json" }
      if argument == "--progress", position + 1 < arguments.count {
        isOn = arguments[position + 1] == "json"
      }
    }
    state.withLock { $0.isOn = isOn }
  }

  /// Writes an event.
  ///
  /// If `isProgress` is true and the reader is slow, the next progress event replaces this one.
  static func emit(_ event: some Encodable, isProgress: Bool = false) {
    guard areOn, let data = try? Output.encode(event, isPretty: false) else { return }
    Output.event(data, isProgress: isProgress)
  }

  /// Writes an event that contains only a message.
  static func emit(_ name: String, _ message: String) {
    emit(Event(event: name, message: message))
  }

  /// Stores the totals for the `end` event.
  static func prepareEnd(_ event: Event) { state.withLock { $0.last = event } }

  /// Stores the error for the `end` event.
  static func fail(_ error: CommandError) { state.withLock { $0.error = ErrorDetails(error) } }

  /// Writes the `end` event.
  static func end(_ status: ExitStatus) {
    emit(
      state.withLock { state in
        var event = state.last
        event.event = "end"
        event.message = event.message ?? state.error?.message
        return End(event: event, status: status, error: state.error)
      })
  }
}
