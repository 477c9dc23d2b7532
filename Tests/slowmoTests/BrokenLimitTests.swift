// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The limits that exit code 10 reports on standard error and in documents.
struct BrokenLimitTests {
  private struct Document: Decodable {
    struct Limit: Decodable {
      enum Value: Decodable, Equatable {
        case number(Double)
        case text(String)

        init(from decoder: any Decoder) throws {
          let container = try decoder.singleValueContainer()
          if let number = try? container.decode(Double.self) {
            self = .number(number)
          } else {
            self = .text(try container.decode(String.self))
          }
        }
      }

      let name: String
      let limit: Value?
      let value: Value?
      let file: String?
    }

    let limits: [Limit]
  }

  private func limits(_ finished: Finished) throws -> [Document.Limit] {
    try JSONDecoder().decode(Document.self, from: Data(finished.output.utf8)).limits
  }

  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `Check names the rate that it expected and found`() async throws {
    let take = try await Takes.plain()
    let broken = try await slowmo("check", take, "--times-only", "--expect-fps", "120", "--json")
    #expect(broken.status == 10)
    let limit = try #require(try limits(broken).first)
    #expect(limit.name == "unexpected_rate" && limit.file == take)
    #expect(limit.limit == .text("120/1") && limit.value != nil)
    #expect(broken.errors.contains("limit exceeded: 240.000 fps instead of 120.000 fps"))
    let kept = try await slowmo("check", take, "--times-only", "--expect-fps", "240", "--json")
    #expect(try kept.status == 0 && limits(kept).isEmpty && !kept.errors.contains("limit"))
  }

  @Test func `Check counts missing frames and not gaps`() async throws {
    let finished = try await slowmo("check", Takes.lossy(), "--times-only", "--json")
    let gaps = try #require(try finished.document()["gaps"] as? [[String: Any]])
    let missing = gaps.compactMap { $0["count"] as? Int }.reduce(0, +)
    let limit = try #require(try limits(finished).first { $0.name == "gaps" })
    #expect(limit.limit == .number(0) && limit.value == .number(Double(missing)))
    #expect(finished.errors.contains("limit exceeded: \(missing) frames are missing"))
  }

  @Test func `Record names the frames that exceed its limit`() async throws {
    let finished = try await slowmo(
      "record", "synthetic:160x120@240?drop=50%&seed=7&pace=max", "-o", scratch.file("a.mov"),
      "--frames", "24", "--max-drops", "0", "--report", scratch.file("a.json"), "--json")
    #expect(finished.status == 10)
    let limit = try #require(try limits(finished).first)
    #expect(limit.name == "max_drops" && limit.limit == .number(0))
    #expect(limit.file == scratch.file("a.mov"))
    #expect(finished.errors.contains("limit exceeded"), "\(finished.errors)")
    let report = try Data(contentsOf: URL(fileURLWithPath: scratch.file("a.json")))
    #expect(try JSONDecoder().decode(Document.self, from: report).limits.count == 1)
  }
}
