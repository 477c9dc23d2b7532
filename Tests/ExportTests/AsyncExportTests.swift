// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Asynchronous exports: their progress, and their end when the task is cancelled.
struct AsyncExportTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func session() throws -> ExportSession {
    let asset = try Asset.made(.constant(100, count: 100), in: directory)
    return try ExportSession(Composition(asset))
  }

  private func settings(_ mode: ExportMode = .passthrough()) -> ExportSettings {
    ExportSettings(path: directory.file("a.mov"), mode: mode)
  }

  @Test func `The progress of an async export rises to the last frame`() async throws {
    let session = try session()
    let progress = ExportProgress()
    let (first, second) = (progress.steps, progress.steps)
    async let report = session.export(
      settings(.constant(30)), progress: progress)
    var steps: [ExportProgress.Step] = []
    for await step in first { steps.append(step) }
    let last = try #require(steps.last)
    #expect(last.done == last.total && last.total == 30)
    #expect(steps.map(\.done) == steps.map(\.done).sorted())
    #expect(steps.allSatisfy { $0.total == last.total })
    // A late or slow listener receives the last step, too.
    var late: [ExportProgress.Step] = []
    for await step in second { late.append(step) }
    #expect(late == [last])
    #expect(try await Asset(path: report.path).videoTrack?.frameCount == 30)
    #expect(try await throughJSON(report) == report)
  }

  @Test func `A cancelled export task leaves no file and ends the progress`() async throws {
    let session = try session()
    let settings = settings()
    let progress = ExportProgress()
    let steps = progress.steps
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await session.export(settings, progress: progress)
    }
    await #expect {
      try await task.value
    } throws: {
      ($0 as? MediaError)?.code == .cancelled
    }
    for await step in steps { #expect(step.done < step.total) }
    #expect(try directory.names() == ["clip.mov"])
  }

  @Test func `An async export refuses an existing output file`() async throws {
    let session = try session()
    _ = try directory.write([1, 2, 3], as: "a.mov")
    let settings = settings()
    await #expect {
      try await session.export(settings)
    } throws: {
      ($0 as? MediaError)?.code == .outputExists
    }
    #expect(try bytes(of: settings.path) == [1, 2, 3])
  }
}
