// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Hides values in printed JSON documents that depend on the machine or the clock.
///
/// The type of a value replaces the value, so that keys, types and nulls are still compared. Other
/// text is not changed, so that order and format are compared, too.
struct ContractMask {
  /// Keys whose value is compared only by its type.
  ///
  /// Null counts as a separate type.
  var typed: Set<String> = []
  /// Keys whose value may be an integer or a fraction, but not null.
  var numbers: Set<String> = []
  /// Keys whose value may be null on a busy machine, with the type that it otherwise has.
  var open: [String: Kind] = [:]
  /// Keys of lists in which only the keys and types of the elements are compared.
  var elements: Set<String> = []
  /// Keys of JSON objects in which only the keys are compared.
  ///
  /// All values are numbers.
  var objects: Set<String> = []
  /// Keys of lists that may be empty or not empty.
  var lists: Set<String> = []
  /// Whether standard error is compared, too.
  var showsErrors = true
  /// Whether devices that exist only on this machine are left out.
  var keepsOwnDevicesOnly = false

  /// A type of JSON value.
  enum Kind: String {
    case string, integer, number, bool, null
  }

  /// A mask that hides no values.
  static let none = ContractMask()

  /// Hides values that depend on the clock and the machine, for commands whose result is otherwise
  /// fixed.
  static let machine = ContractMask(
    typed: [
      "wall_ns", "startup_ns", "disk_bytes_per_second", "free_bytes", "free_ns",
      "longest_burst_ns", "capacity_bytes", "peak_bytes", "capture_ns",
    ], objects: ["cost"])

  /// Hides values of a take from a camera in real time.
  ///
  /// Only requested values are fixed.
  static let live = ContractMask(
    typed: machine.typed.union([
      "duration_ns", "expected", "stored", "corrupt", "lost_start", "lost_device", "lost_kernel",
      "lost_queue", "lost_writer", "evicted", "unknown", "after_index", "count", "at_ns", "cause",
      "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns", "median_ns", "min_ns", "bit_rate",
      "samples", "value",
      "jitter_ns", "bytes",
      "dropped", "frames", "drops", "ignored_triggers", "cpu_ns_per_frame",
      "capture_thread_ns_per_frame", "writer_thread_ns_per_frame", "peak_memory_bytes", "kernel",
      "processor_count", "date",
      "alsa-lib", "libavcodec", "libavformat", "libavutil", "librubberband", "libswresample",
      "libswscale",
    ]),
    open: [
      "measured_fps": .string, "measured_fps_value": .number, "rate_cause": .string,
      "frame_index": .integer, "timestamp_quantum_ns": .integer, "start_offset_ns": .integer,
      "drift_ppm": .number,
      "max_sync_error_ns": .integer, "memory_growth_bytes": .integer, "fps": .string,
      "fps_value": .number, "disk_bytes_per_second": .integer, "processor": .string,
    ],
    elements: ["gaps"], objects: ["cost"], lists: ["warnings"], showsErrors: false)

  /// The mask ``live`` for takes in which a busy machine may lose frames.
  static var liveWithOrWithoutGaps: ContractMask {
    var mask = live
    mask.elements = []
    mask.lists.insert("gaps")
    return mask
  }

  /// Replaces the hidden values in the text of JSON documents.
  func applied(to text: String) -> String {
    var text = text
    for key in typed.union(numbers).union(open.keys).sorted() {
      text = replacing(key, in: text) { masked($0, of: key) }
    }
    for key in objects.sorted() {
      text = replacing(key, #"(\{[^{}]*\})"#, in: text) { object in
        String(object).replacing(/: ?-?[0-9]+/, with: ": 0")
      }
    }
    for key in lists.sorted() { text = replacingList(key, in: text) { _ in "\"<list>\"" } }
    for key in elements.sorted() {
      text = replacingList(key, in: text) { list in
        let kinds = Self.objects(in: list)
        return "[\(kinds.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.joined())]"
      }
    }
    if keepsOwnDevicesOnly {
      text = replacingList("devices", in: text) { list in
        let own = Self.objects(in: list).filter(Self.isOwnDevice)
        return "[\(own.joined(separator: ", "))]"
      }
    }
    return text
  }

  /// Whether a line or an object describes the synthetic camera, which each machine has.
  static func isOwnDevice(_ text: String) -> Bool {
    text.contains("\"synthetic\"")
  }

  private func replacing(
    _ key: String, in text: String, _ change: (Substring) -> String
  ) -> String {
    // Only scalar JSON values are replaced, and not objects or lists.
    replacing(key, #"("(?:[^"\\]|\\.)*"|-?[0-9][-+.eE0-9]*|true|false|null)"#, in: text, change)
  }

  private func replacingList(
    _ key: String, in text: String, _ change: (Substring) -> String
  ) -> String {
    // Nested lists are short lists of strings.
    replacing(key, #"(\[(?:[^\[\]]|\[[^\[\]]*\])*\])"#, in: text, change)
  }

  private func replacing(
    _ key: String, _ value: String, in text: String, _ change: (Substring) -> String
  ) -> String {
    guard
      let member = try? Regex<(Substring, Substring, Substring)>("(\"\(key)\" ?: ?)\(value)")
    else { preconditionFailure("no pattern for \(key)") }
    return text.replacing(member) { String($0.output.1) + change($0.output.2) }
  }

  private static func objects(in list: Substring) -> [String] {
    list.matches(of: /\{[^{}]*\}/).map { String($0.output) }
  }

  private func masked(_ value: Substring, of key: String) -> String {
    let kind = Self.kind(of: value)
    let isNumber = kind == .integer || kind == .number
    if let open = open[key] {
      let isOpen = kind == .null || kind == open || open == .number && isNumber
      return "\"<\(isOpen ? "\(open) or null" : kind.rawValue)>\""
    }
    if numbers.contains(key), isNumber { return "\"<number>\"" }
    return kind == .null ? "null" : "\"<\(kind)>\""
  }

  private static func kind(of value: Substring) -> Kind {
    switch value.first {
    case "\"": .string
    case "t", "f": .bool
    case "n": .null
    default: value.allSatisfy { $0.isNumber || $0 == "-" } ? .integer : .number
    }
  }
}

/// Checks that masks hide only what they should.
struct ContractMaskTests {
  @Test func `A fixture mask replaces selected JSON values by their types`() {
    let mask = ContractMask(
      typed: ["a_ns", "b"], numbers: ["n"], open: ["c": .string], elements: ["gaps"],
      lists: ["warnings"])
    let text = """
      {
        "a_ns" : 12,
        "b" : 1.5,
        "c" : null,
        "d" : "a_ns",
        "gaps" : [
          {"a_ns" : 1},
          {"a_ns" : 2}
        ],
        "warnings" : [

        ]
      }
      """
    let masked = """
      {
        "a_ns" : "<integer>",
        "b" : "<number>",
        "c" : "<string or null>",
        "d" : "a_ns",
        "gaps" : [{"a_ns" : "<integer>"}],
        "warnings" : "<list>"
      }
      """
    #expect(mask.applied(to: text) == masked)
    #expect(mask.applied(to: #"{"b":null,"c":"x"}"#) == #"{"b":null,"c":"<string or null>"}"#)
    #expect(mask.applied(to: #"{"c":1,"n":1}"#) == #"{"c":"<integer>","n":"<number>"}"#)
    #expect(mask.applied(to: #"{"e":12}"#) == #"{"e":12}"#)
  }
}
