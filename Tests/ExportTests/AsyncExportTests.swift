// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Exports that suspend their task, tell how far they are and are cancelled with it.
struct AsyncExportTests {
  private let folder: Scratch

  init() throws { folder = try Scratch() }

  private func session() throws -> ExportSession {
    let asset = try Asset.made(.constant(100, count: 100), in: folder)
    return try ExportSession(Composition(asset))
  }

  private func settings(_ mode: ExportMode = .passthrough()) -> ExportSettings {
    ExportSettings(path: folder.file("a.mov"), mode: mode)
  }

  @Test func `Steps rise to the last frame, and end with the export`() async throws {
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
    // Who listens later, or slowly, has the last step all the same.
    var late: [ExportProgress.Step] = []
    for await step in second { late.append(step) }
    #expect(late == [last])
    #expect(try await Asset(path: report.path).videoTrack?.frameCount == 30)
    #expect(try await throughJSON(report) == report)
  }

  @Test func `A task that is cancelled leaves nothing behind, and its steps end`() async throws {
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
    #expect(try folder.names() == ["clip.mov"])
  }

  @Test func `What is refused is refused by the form that suspends as well`() async throws {
    let session = try session()
    _ = try folder.write([1, 2, 3], as: "a.mov")
    let settings = settings()
    await #expect {
      try await session.export(settings)
    } throws: {
      ($0 as? MediaError)?.code == .outputExists
    }
    #expect(try bytes(of: settings.path) == [1, 2, 3])
  }
}
