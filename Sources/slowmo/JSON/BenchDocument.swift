// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// The figures of one benchmark.
typealias BenchReport = Encodable & TextDocument

/// The JSON document of a benchmark: its figures, and the conditions that they depend on.
struct BenchDocument: Encodable, TextDocument {
  private enum CodingKeys: CodingKey {
    case schema, kernel, processor, processorCount, version, libraries, date
  }

  private let report: any BenchReport
  /// The versions of the linked libraries.
  private let libraries = Dictionary(LinkedLibraries.versions.map { ($0.name, $0.version) }) { $1 }
  /// The time at which the measurement ended, in ISO 8601.
  private let date = Date.now.formatted(.iso8601)

  init(_ report: some BenchReport) { self.report = report }

  func encode(to encoder: any Encoder) throws {
    try report.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("bench"), forKey: .schema)
    try container.encode(Machine.kernel, forKey: .kernel)
    try container.encode(Machine.processor, forKey: .processor)
    try container.encode(Processors.count, forKey: .processorCount)
    try container.encode(OvercrankVersion.number, forKey: .version)
    try container.encode(libraries, forKey: .libraries)
    try container.encode(date, forKey: .date)
  }

  /// Prints the document as JSON or as lines of text.
  func print(_ common: CommonOptions) throws -> ExitStatus {
    try Output.print(self, asJSON: common.json)
    return .done
  }

  var lines: [String] {
    let versions = libraries.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    let processor = Machine.processor ?? "unknown processor"
    return report.lines + [
      "machine: \(Machine.kernel), \(Processors.count) x \(processor)",
      "slowmo \(OvercrankVersion.number), \(versions.joined(separator: ", ")), \(date)",
    ]
  }
}
