// SPDX-License-Identifier: Apache-2.0

/// The result of one check of `slowmo doctor`.
struct SystemCheck: Encodable, Equatable {
  /// The name of the check in JSON documents, such as `permissions`.
  let name: String
  /// Whether the check passed: the state would not make a recording fail or lose frames.
  let ok: Bool
  /// The observed state, as one line.
  let found: String
  /// The instruction that solves a problem or improves the state; nil for none.
  let advice: String?

  enum CodingKeys: CodingKey { case name, ok, found, advice }

  init(_ name: String, ok: Bool = true, _ found: String, advice: String? = nil) {
    (self.name, self.ok, self.found, self.advice) = (name, ok, found, advice)
  }
}

/// The JSON document of `slowmo doctor`.
struct DoctorDocument: Encodable, TextDocument {
  let schema = schemaName("doctor")
  let device: String?
  let checks: [SystemCheck]
  let ok: Bool
  /// One for each check that found a problem.
  let limits: [BrokenLimit]

  enum CodingKeys: CodingKey { case schema, device, checks, ok, limits }

  init(device: String?, checks: [SystemCheck]) {
    (self.device, self.checks) = (device, checks)
    ok = checks.allSatisfy(\.ok)
    limits = checks.filter { !$0.ok }.map {
      BrokenLimit($0.name, value: .text($0.found), file: nil, "\($0.name): \($0.found)")
    }
  }

  var lines: [String] {
    let width = checks.map(\.name.count).max() ?? 0
    let lines = checks.flatMap { check in
      let name = check.name + String(repeating: " ", count: width - check.name.count)
      let advice = check.advice.map { "           \(check.ok ? "tip" : "fix"): \($0)" }
      return ["\(check.ok ? "ok     " : "problem")  \(name)  \(check.found)", advice]
    }
    let problems = checks.count { !$0.ok }
    return lines.compactMap(\.self)
      + [problems == 0 ? "no problems" : problems == 1 ? "1 problem" : "\(problems) problems"]
  }
}
