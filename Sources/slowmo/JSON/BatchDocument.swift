// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of a batch, with the result of each file.
struct BatchDocument: Encodable, TextDocument {
  /// The result of exporting one file.
  struct File: Encodable, Sendable {
    enum Status: String, Encodable {
      case made
      /// The output was finished by an earlier export.
      case kept
      case failed
      /// A signal ended the export.
      case interrupted
      /// A signal came before the export began.
      case notStarted = "not_started"
      /// With `--dry-run`: the output would be made.
      case planned
    }

    /// The kind of file that an earlier export left.
    enum Earlier: String, Encodable {
      /// A temporary file of a process that was killed.
      case unfinished
      /// An output of a different source, plan or version.
      case outdated
    }

    let source: String
    let file: String
    var status = Status.notStarted
    var earlier: Earlier?
    /// The number of frames in the output; nil unless the output was made or planned.
    var frames: Int64?
    var elapsed: Duration?
    private(set) var exitCode: Int32?
    private(set) var error: ErrorDetails?

    init(source: String, file: String) {
      (self.source, self.file) = (source, file)
    }

    private enum CodingKeys: String, CodingKey {
      case source, file, status, earlier, frames, exitCode, error
      case elapsed = "wall"
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(source, forKey: .source)
      try container.encode(file, forKey: .file)
      try container.encode(status.rawValue, forKey: .status)
      try container.encodeIfPresent(earlier?.rawValue, forKey: .earlier)
      try container.encodeIfPresent(frames, forKey: .frames)
      try container.encodeIfPresent(elapsed, forKey: .elapsed)
      try container.encodeIfPresent(exitCode, forKey: .exitCode)
      if let error { try container.encode(error, forKey: .error) }
    }

    mutating func fail(_ error: CommandError) {
      status = .failed
      exitCode = error.status.rawValue
      self.error = ErrorDetails(error)
    }

    /// The result of the file as a text line.
    var line: String {
      switch status {
      case .made:
        let again = earlier.map { " again (\($0.rawValue) before)" } ?? ""
        return "\(file): made\(again), \(frames ?? 0) frames"
      case .kept: return "\(file): kept, it was finished before"
      case .failed: return "\(source): failed: \(error?.message ?? ""); \(error?.hint ?? "")"
      case .interrupted: return "\(source): interrupted"
      case .notStarted: return "\(source): not started"
      case .planned: return "\(file): would be made, \(frames ?? 0) frames"
      }
    }
  }

  let verb: String
  let isDryRun: Bool
  let jobs: Int
  let files: [File]
  var elapsed = Duration.zero

  private enum CodingKeys: CodingKey {
    case schema, dryRun, jobs, made, kept, failed, remaining, files, wall
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName(verb), forKey: .schema)
    try container.encode(isDryRun, forKey: .dryRun)
    try container.encode(jobs, forKey: .jobs)
    try container.encode(count(.made), forKey: .made)
    try container.encode(count(.kept), forKey: .kept)
    try container.encode(count(.failed), forKey: .failed)
    try container.encode(remaining, forKey: .remaining)
    try container.encode(files, forKey: .files)
    try container.encode(elapsed, forKey: .wall)
  }

  private func count(_ status: File.Status) -> Int { files.count { $0.status == status } }

  /// The number of files that were neither finished nor failed.
  private var remaining: Int { files.count - count(.made) - count(.kept) - count(.failed) }

  /// The summary of the batch in one line.
  var summary: String {
    var parts = ["\(count(.made)) made", "\(count(.kept)) kept", "\(count(.failed)) failed"]
    if remaining > 0 { parts.append("\(remaining) \(isDryRun ? "to make" : "not made")") }
    return "\(files.count) files: " + parts.joined(separator: ", ")
  }

  var lines: [String] { files.map(\.line) + [summary] }

  /// The most serious exit status of the failed files; `done` if none failed.
  var worstStatus: ExitStatus {
    let found = Set(files.compactMap(\.exitCode))
    return ExitStatus.bySeverity.first { found.contains($0.rawValue) } ?? .done
  }
}

extension ExitStatus {
  /// The exit statuses of failures, the most serious first: problems of the machine, then of the
  /// options, then of a single file.
  fileprivate static let bySeverity: [ExitStatus] = [
    .internalError, .inputOutput, .cannotCreate, .noPermission, .unavailable, .gaveUpWaiting,
    .usage,
    .badData, .noInput, .limitBroken,
  ]
}
