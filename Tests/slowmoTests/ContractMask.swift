// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What is hidden of the documents that the command prints, because the machine or the clock makes
/// it: in place of the value stands its type, so that keys, types and nulls are still compared.
///
/// The text stays as it is otherwise, so that order and form are compared, too.
struct ContractMask {
  /// Keys whose value is only compared by its type; null is a type of its own.
  var typed: Set<String> = []
  /// Keys of numbers that may be whole or not; null is not one.
  var numbers: Set<String> = []
  /// Keys whose value may also be null, as the load of the machine has it, with its type.
  var open: [String: Kind] = [:]
  /// Lists of which only what their elements look like is compared.
  var elements: Set<String> = []
  /// Objects of numbers of which only the keys are compared.
  var objects: Set<String> = []
  /// Lists that may be empty or not.
  var lists: Set<String> = []
  /// Whether standard error is compared, too.
  var showsErrors = true
  /// Whether devices are left out that other machines have not.
  var keepsOwnDevicesOnly = false

  /// A type of JSON.
  enum Kind: String {
    case string, integer, number, bool, null
  }

  /// Nothing.
  static let none = ContractMask()

  /// What the clock and the machine make of a verb whose result is otherwise fixed.
  static let machine = ContractMask(
    typed: [
      "wall_ns", "startup_ns", "disk_bytes_per_second", "free_bytes", "free_ns",
      "longest_burst_ns", "capacity_bytes", "peak_bytes", "capture_ns",
    ], objects: ["cost"])

  /// What a camera that does not wait makes, on a machine that may be busy: of such a take only
  /// what was asked for is fixed.
  static let live = ContractMask(
    typed: machine.typed.union([
      "duration_ns", "expected", "stored", "corrupt", "lost_start", "lost_device", "lost_kernel",
      "lost_queue", "lost_writer", "evicted", "unknown", "after_index", "count", "at_ns", "cause",
      "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns", "median_ns", "min_ns", "bit_rate",
      "samples",
      "jitter_ns", "bytes",
      "dropped", "frames", "drops", "ignored_triggers", "cpu_ns_per_frame",
      "capture_thread_ns_per_frame", "writer_thread_ns_per_frame", "peak_memory_bytes", "kernel",
      "processor_count", "date",
      "alsa-lib", "libavcodec", "libavformat", "libavutil", "librubberband", "libswresample",
      "libswscale",
    ]),
    open: [
      "measured_fps": .string, "measured_fps_value": .number, "rate_cause": .string,
      "frame_index": .integer, "start_offset_ns": .integer, "drift_ppm": .number,
      "max_sync_error_ns": .integer, "memory_growth_bytes": .integer, "fps": .string,
      "fps_value": .number, "disk_bytes_per_second": .integer, "processor": .string,
    ],
    elements: ["gaps"], objects: ["cost"], lists: ["warnings"], showsErrors: false)

  /// The same where nothing is lost on purpose.
  static var liveWithOrWithoutGaps: ContractMask {
    var mask = live
    mask.elements = []
    mask.lists.insert("gaps")
    return mask
  }

  /// A text of documents with these values hidden.
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

  /// Whether a line or an object tells of the device that is there everywhere.
  static func isOwnDevice(_ text: String) -> Bool {
    text.contains("\"synthetic\"")
  }

  private func replacing(
    _ key: String, in text: String, _ change: (Substring) -> String
  ) -> String {
    // JSON's scalars; an object or a list under such a key stays.
    replacing(key, #"("(?:[^"\\]|\\.)*"|-?[0-9][-+.eE0-9]*|true|false|null)"#, in: text, change)
  }

  private func replacingList(
    _ key: String, in text: String, _ change: (Substring) -> String
  ) -> String {
    // Lists in a list's elements are those of strings, and short.
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

/// The masks themselves.
struct ContractMaskTests {
  @Test func `A mask hides only selected values and keeps their types`() {
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
