// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The progress of an export, for any number of observers; safe to use from any thread.
///
/// ```swift
/// let progress = ExportProgress()
/// async let report = session.export(settings, progress: progress)
/// for await step in progress.steps { print("\(step.done) of \(step.total) frames") }
/// print(try await report.path)
/// ```
public final class ExportProgress: Sendable {
  /// The number of finished frames.
  public struct Step: Hashable, Sendable {
    /// The number of frames written so far.
    public let done: Int64
    /// The number of frames in the finished movie.
    public let total: Int64
  }

  private let hub = EventHub<Step>(capacity: 1)

  /// Creates the progress of one export.
  public init() {}

  /// The steps from now until the export ends; a slow observer receives only the newest step.
  public var steps: some AsyncSequence<Step, Never> & Sendable { hub.events() }

  func send(done: Int64, of total: Int64) { hub.send(Step(done: done, total: total)) }

  func finish() { hub.finish() }
}
