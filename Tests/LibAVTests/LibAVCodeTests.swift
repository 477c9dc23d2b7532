// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Foundation
import OvercrankLinuxSystem
import OvercrankMediaCore
import Testing

@testable import OvercrankLibAV

/// Errors of FFmpeg libraries have the log line of the call that failed, also with several threads.
struct LibAVCodeTests {
  /// Opens a file that is not a movie, so that libav logs a line.
  private func failure(_ name: String) -> CallFailure? {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID())-\(name).mov"
    _ = FileManager.default.createFile(atPath: path, contents: Data("not a movie at all".utf8))
    defer { try? FileManager.default.removeItem(atPath: path) }
    do throws(CallFailure) {
      _ = try Demuxer(opening: path)
      return nil
    } catch { return error }
  }

  @Test func `An FFmpeg error has only the log line of the failed call`() throws {
    let first = try #require(failure("a"))
    #expect(first.logLine == "moov atom not found")
    #expect(first.description.hasSuffix("(libav: \"moov atom not found\")"))
    #expect(CallFailure("find", "a codec", code: -22).logLine == nil)
    #expect(CallFailure("sync", "clip.mov", EIO).logLine == nil)
  }

  @Test func `Only the FFmpeg error for invalid data counts as file damage`() {
    let codes = [CFFmpeg_INVALIDDATA, CFFmpeg_EXIT, -EIO, -ETIMEDOUT]
    let isDamage = codes.map { CallFailure("read", "a", code: $0).isDamage }
    #expect(isDamage == [true, false, false, false])
  }

  @Test func `An error has no FFmpeg log line from an earlier call`() {
    LibAVLog.during { log("left over") }
    do throws(CallFailure) {
      try CallFailure.check(-22, "test", "a call that logs nothing")
    } catch { #expect(error.logLine == nil) }
  }

  @Test func `The last log line of an FFmpeg call is kept and trimmed`() {
    LibAVLog.during {
      log("first")
      log("  second \n")
    }
    #expect(LibAVLog.takeLine() == "second")
    #expect(LibAVLog.takeLine() == nil)
  }

  @Test func `Each thread keeps its own FFmpeg log lines`() async {
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          // The closure has no suspension point, so it stays on one thread.
          (0..<2_000).allSatisfy { round in
            LibAVLog.during { log("line \(number) \(round)") }
            return LibAVLog.takeLine() == "line \(number) \(round)"
          }
        }
      }
      for await isOwn in group { #expect(isOwn) }
    }
  }
}

/// Logs a line as libav itself does.
private func log(_ line: String) {
  withVaList([]) { av_vlog(nil, AV_LOG_ERROR, line, $0) }
}
