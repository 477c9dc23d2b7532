// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import SlowmoCommands

/// Files and resource limits that could crash the command or take control of the terminal.
struct HostileFileTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A movie with chapters and tags, made by ffmpeg.
  private func movie(chapters: [String] = [], tags: [String] = []) async throws -> String {
    var text = ";FFMETADATA1\n"
    for (number, title) in chapters.enumerated() {
      let escaped = title.map { "=;#\\\n".contains($0) ? "\\\($0)" : "\($0)" }.joined()
      text += "[CHAPTER]\nTIMEBASE=1/1000\nSTART=\(number * 10)\nEND=\(number * 10 + 10)\n"
      text += "title=\(escaped)\n"
    }
    let path = scratch.file("clip.mov")
    try await FFmpeg.make(
      path,
      [
        "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=30:duration=1", "-i",
        try scratch.write(Array(text.utf8), as: "chapters.txt"), "-map", "0", "-map_metadata", "1",
      ] + tags.flatMap { ["-metadata", $0] } + ["-movflags", "use_metadata_tags", "-c:v", "mjpeg"])
    return path
  }

  @Test func `Control characters of a movie title are escaped in output`() async throws {
    let hostile = "hit\u{1B}]0;owned\u{7}\u{1B}[2J\u{9B}31m"
    let clip = try await movie(chapters: [hostile])
    for verb in ["info \(clip)", "frames \(clip) --at @\u{1B}[2J -o x.png", "info \u{1B}[2J.mov"] {
      let finished = try await run(
        slowmoPath, verb.split(separator: " ").map(String.init), in: scratch.path)
      for text in [finished.output, finished.errors] {
        #expect(
          !text.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
      }
    }
    let info = try await slowmo("info", clip)
    #expect(info.output.contains("hit\\u{1B}]0;owned"), "\(info.output)")
    let chapters = try await slowmo("info", clip, "--json").document()["chapters"]
    #expect((chapters as? [[String: Any]])?.first?["title"] as? String == hostile)
  }

  @Test func `Control characters are escaped in a table on a terminal`() throws {
    let table = Array("index,codes\n0,\"qr:\u{1B}]0;x\u{7}\u{202E}ü\"\n".utf8)
    #expect(
      String(decoding: Output.terminalText(table + [0x9B]), as: UTF8.self)
        == "index,codes\n0,\"qr:\\u{1B}]0;x\\u{07}\\u{202E}ü\"\n\\x9B")
    #expect(Output.terminalText([]) == [])
  }

  @Test func `A frame image stores a location with an extreme altitude`() async throws {
    let clip = try await movie(tags: [
      "com.apple.quicktime.location.ISO6709=+35.6895+139.6917+999999999/"
    ])
    let finished = try await slowmo("frames", clip, "--at", "0", "-o", "x.jpg", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let tags = try await run(
      "ffprobe", ["-v", "error", "-show_entries", "frame_tags", scratch.file("x.jpg")])
    #expect(tags.output.contains("139:1") && tags.output.contains("999999999:1"), "\(tags.output)")
  }

  @Test func `A number that JSON cannot store is written as null`() throws {
    let numbers = ["a": Double.nan, "b": -.infinity, "c": 0.5]
    let text = String(decoding: try Output.encode(numbers, isPretty: false), as: UTF8.self)
    #expect(text == #"{"a":null,"b":null,"c":0.5}"#)
  }

  @Test func `Too few file descriptors end a command with one error line`() async throws {
    let take = try await Takes.plain()
    let script = """
      printf '0.1 space\\n0.2 q\\n' > keys
      for count in 4 5 6 7 8 9 12; do
        for line in "play $2 -o a$count.mp4 --fps 30 --audio none --script keys" \\
          "retime $2 -o b$count.mp4 --range 1..1.1 --speed 1/2 --fps 60 --sampling flow"; do
          (ulimit -n $count; timeout -k 1 300 "$1" $line --progress none >/dev/null 2>errors)
          echo "$? $(wc -l <errors)"
        done
      done
      """
    let finished = try await bash(script, take, in: scratch.path)
    let lines = finished.output.split(separator: "\n")
    #expect(lines.count == 14)
    for line in lines {
      let status = line.split(separator: " ").first.flatMap { Int($0) } ?? -1
      #expect([0, 69, 70, 73, 74].contains(status), "\(finished.output)")
      if status != 0 { #expect(line.hasSuffix(" 1"), "\(finished.output)") }
    }
  }

  @Test func `A crash under a memory limit prints one error line`() async throws {
    let script = """
      ulimit -v 4000000
      "$1" devices --watch >devices 2>errors &
      watch=$!
      await '[ -s devices ]' $watch
      kill -SEGV $watch
      status=0
      wait $watch || status=$?
      echo "$status $(wc -l <errors)"
      """
    let finished = try await bash(script, in: scratch.path)
    #expect(finished.output == "70 1\n", "\(finished.output)\(finished.errors)")
  }

  @Test func `A terminal of extreme size shows a preview`() async throws {
    let script = """
      import fcntl, os, pty, struct, subprocess, sys, termios, threading
      leader, follower = pty.openpty()
      fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 65535, 65535, 0, 0))
      def begin():
          os.setsid()
          fcntl.ioctl(0, termios.TIOCSCTTY, 0)
      shown = subprocess.Popen([sys.argv[1], "preview", "synthetic:160x120@30", "--terminal", "-t", "0.1"],
          stdin=follower, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=begin)
      os.close(follower)
      def drain():
          try:
              while os.read(leader, 1 << 16): pass
          except OSError: pass
      threading.Thread(target=drain, daemon=True).start()
      errors = shown.communicate()[1]
      sys.exit(f"{shown.returncode} {errors}" if shown.returncode else 0)
      """
    let finished = try await run("python3", ["-c", script, slowmoPath], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
  }

  @Test func `The --exec command gets the movie path in SLOWMO_FILE`() async throws {
    let name = "$(touch owned) `touch owned` a'b.mov"
    let script = """
      "$1" record 'synthetic:160x120@240?pace=max' -o "$2" -t 0.1 --progress none \\
        --exec 'test -z "$SLOWMO_TRIGGER_NS"; printf %s "$(basename "$SLOWMO_FILE")" >found' >/dev/null
      """
    let finished = try await bash(script, name, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try String(decoding: bytes(of: scratch.file("found")), as: UTF8.self) == name)
    #expect(try Set(scratch.names()) == ["found", name])
  }

  @Test func `A shard overwrites an older shard but no other file`() async throws {
    let take = try await Takes.plain()
    let made = try await slowmo(
      "retime", take, "-o", scratch.file("p.otio"), "--range", "1..1.1", "--speed", "1/4")
    try #require(made.status == 0, "\(made.errors)")
    let script = """
      shard=film.shard-1-of-2.mov
      make() { "$1" edit p.otio -o film.mp4 --fps 30 --pitch mute --progress none --shard 1/2 $2 \\
        >/dev/null 2>&1 && echo 0 || echo $?; }
      echo precious > notes
      cp notes $shard; make "$1"; cmp notes $shard
      rm $shard; ln -s notes $shard; make "$1"; [ "$(cat notes)" = precious ]; [ -L $shard ]
      rm $shard; make "$1"; cp $shard copy; printf x >>$shard; make "$1"; cmp copy $shard
      mv $shard other.mov; printf x >>other.mov; cp other.mov copy; ln -s other.mov $shard
      make "$1"; cmp copy other.mov
      """
    let finished = try await bash("set -e\n" + script, in: scratch.path)
    #expect(finished.status == 0, "\(finished.output)\(finished.errors)")
    #expect(finished.output.split(separator: "\n") == ["73", "73", "0", "0", "73"])
  }
}
