// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Floods of 100 000 triggers.
///
/// The tests run one after the other, since each uses the whole machine.
@Suite(.serialized) struct FloodTests {
  /// Floods a capture with triggers, sends it one SIGTERM meanwhile, and prints its peak memory in
  /// KiB.
  private static let flood = """
    import os, resource, signal, socket, subprocess, sys, threading

    slowmo, kind, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    process = subprocess.Popen(
        [slowmo, "record", "synthetic:160x120@240", "-o", "c{n:05}.mov", "--pre", "50ms",
         "--post", "100ms", "--trigger", f"udp:{port}" if kind == "udp" else kind, "--repeat",
         "--json"], stdin=subprocess.PIPE, stdout=open("report.json", "wb"),
        stderr=subprocess.PIPE)
    while b"waiting for" not in process.stderr.readline():
        if process.poll() is not None:
            sys.exit("the capture ended by itself")
    threading.Thread(target=process.stderr.read, daemon=True).start()
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ended = threading.Event()

    def send(count):
        try:
            if kind == "key":
                os.write(process.stdin.fileno(), b"\\n" * count)
                return
            for _ in range(count):
                if kind == "udp":
                    sender.sendto(b"x", ("127.0.0.1", port))
                else:
                    os.kill(process.pid, signal.SIGUSR1)
        except OSError:
            pass  # The capture has ended.

    def keep_sending():
        while not ended.is_set():
            send(1_000)

    sent = 0
    while sent < count:
        send(1_000)
        sent += 1_000
    threading.Thread(target=keep_sending, daemon=True).start()
    process.send_signal(signal.SIGTERM)
    status = os.wait4(process.pid, 0)
    ended.set()
    print(status[2].ru_maxrss)
    # Another thread may still write lines to the ended process.
    sys.stdout.flush()
    os._exit(os.waitstatus_to_exitcode(status[1]))
    """

  @Test(arguments: ["key", "udp", "signal"])
  func `A flood of triggers makes at most one clip per quiet period`(kind: String) async throws {
    let scratch = try Scratch()
    try Self.flood.write(toFile: scratch.file("flood.py"), atomically: true, encoding: .utf8)
    let finished = try await run(
      "python3", ["flood.py", slowmoPath, kind, "\(try freePort())", "100000"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try document(scratch.file("report.json"))
    #expect(report["stopped_by"] as? String == "signal")
    let ledger = try #require(report["ledger"] as? [String: Int])
    let files = try #require(report["files"] as? [[String: Any]])
    // A quiet period lasts 36 frames. One more trigger may be at each end of the capture.
    #expect(!files.isEmpty && files.count <= (ledger["expected"] ?? 0) / 36 + 2)
    #expect(try scratch.names().count { $0.hasSuffix(".mov") } == files.count)
    #expect(files.allSatisfy { $0["playable"] as? Bool == true })
    // Each frame is in at most one clip.
    let stored = files.compactMap { ($0["ledger"] as? [String: Int])?["stored"] }
    #expect(stored.reduce(0, +) == ledger["stored"])
    let ignored = try #require(report["ignored_triggers"] as? Int)
    #expect(ignored > (kind == "signal" ? 1 : 100))
    let kibibytes = try #require(Int(finished.output.split(separator: "\n").last ?? ""))
    #expect(kibibytes < 400 << 10, "\(kibibytes) KiB")
    print("\(kind): \(files.count) clips, \(ignored) triggers ignored, \(kibibytes >> 10) MiB")
  }
}
