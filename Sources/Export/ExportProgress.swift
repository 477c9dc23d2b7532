// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The progress of an export, for any number of observers.
///
/// ```swift
/// let progress = ExportProgress()
/// async let report = session.export(settings, progress: progress)
/// for await step in progress.steps { print("\(step.done) of \(step.total) frames") }
/// print(try await report.path)
/// ```
///
/// All calls may come from any thread.
public final class ExportProgress: Sendable {
  /// The state of an export's progress.
  public struct Step: Hashable, Sendable {
    /// The number of output frames written so far.
    public let done: Int64
    /// The number of frames in the finished movie.
    public let total: Int64
  }

  private let hub = EventHub<Step>(capacity: 1)

  /// Creates the progress of one export.
  public init() {}

  /// The progress from now until the export ends.
  ///
  /// A slow observer receives only the newest step.
  public var steps: some AsyncSequence<Step, Never> & Sendable { hub.events() }

  func send(done: Int64, of total: Int64) { hub.send(Step(done: done, total: total)) }

  func finish() { hub.finish() }
}
