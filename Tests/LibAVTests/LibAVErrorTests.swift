// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Foundation
import OvercrankLinuxSystem
import Testing

@testable import OvercrankLibAV

/// A line of libav's log belongs to the call that failed, on its thread.
struct LibAVErrorTests {
  /// Opens a file that is not a movie, which libav logs a line about.
  private func failure(_ name: String) -> LibAVError? {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID())-\(name).mov"
    _ = FileManager.default.createFile(atPath: path, contents: Data("not a movie at all".utf8))
    defer { try? FileManager.default.removeItem(atPath: path) }
    do throws(LibAVError) {
      _ = try Demuxer(opening: path)
      return nil
    } catch { return error }
  }

  @Test func `The line of a failed call is in its error, and in no error after it`() throws {
    let first = try #require(failure("a"))
    #expect(first.logLine == "moov atom not found")
    #expect(first.description.hasSuffix("(libav: \"moov atom not found\")"))
    #expect(LibAVError("find", "a codec", code: -22).logLine == nil)
    #expect(LibAVError(SystemError("sync", "clip.mov", EIO)).logLine == nil)
  }

  @Test func `A line that no error took is gone before the next call`() {
    LibAVLog.during { log("left over") }
    do throws(LibAVError) {
      try LibAVError.check(-22, "test", "a call that logs nothing")
    } catch { #expect(error.logLine == nil) }
  }

  @Test func `The last line of a call is kept, without the space around it`() {
    LibAVLog.during {
      log("first")
      log("  second \n")
    }
    #expect(LibAVLog.takeLine() == "second")
    #expect(LibAVLog.takeLine() == nil)
  }

  @Test func `Threads that fail at once keep their own lines`() async {
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          // Nothing in here suspends, so it stays on one thread.
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
