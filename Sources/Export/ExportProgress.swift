// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Tells how far an export is, for any number of listeners; all calls may come from any thread.
///
/// ```swift
/// let progress = ExportProgress()
/// async let report = session.export(settings, progress: progress)
/// for await step in progress.steps { print("\(step.done) of \(step.total) frames") }
/// print(try await report.path)
/// ```
public final class ExportProgress: Sendable {
  /// How many frames are done.
  public struct Step: Hashable, Sendable {
    /// The frames that are written.
    public let done: Int64
    /// The frames that the movie will have.
    public let total: Int64
  }

  private let hub = EventHub<Step>(capacity: 1)

  /// Makes the progress of one export.
  public init() {}

  /// The steps from now on, which end when the export does; a slow listener gets the newest alone.
  public var steps: some AsyncSequence<Step, Never> & Sendable { hub.events() }

  func send(done: Int64, of total: Int64) { hub.send(Step(done: done, total: total)) }

  func finish() { hub.finish() }
}
