// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Output files, which get their final name when they are complete and never replace an input file.
struct OutputFileTests {
  /// A directory with a take, links to it and a project.
  private func prepared() async throws -> Scratch {
    let scratch = try Scratch()
    try FileManager.default.copyItem(
      atPath: try await Takes.plain(), toPath: scratch.file("take.mov"))
    let made = try await slowmo(
      "retime", "take.mov", "-o", "p.otio", "--speed", "1/2", in: scratch.path)
    try #require(made.status == 0, "\(made.errors)")
    try FileManager.default.linkItem(
      atPath: scratch.file("take.mov"), toPath: scratch.file("hard.mov"))
    try FileManager.default.createSymbolicLink(
      atPath: scratch.file("soft.mov"), withDestinationPath: "take.mov")
    return scratch
  }

  @Test func `An output that is also an input is rejected in spite of -y`() async throws {
    let scratch = try await prepared()
    let retime = ["retime", "take.mov", "--speed", "1/8", "--copy", "-y", "-o"]
    let cases: [(line: [String], status: Int32)] = [
      (retime + ["take.mov"], 73), (retime + ["./take.mov"], 73), (retime + ["hard.mov"], 73),
      (retime + ["soft.mov"], 73), (["retime", "soft.mov"] + retime[2...] + ["take.mov"], 73),
      (["retime", "take.mov", "-o", "take.mov", "--sidecar", "p.otio", "--copy", "-y"], 73),
      (["retime", "take.mov", "-o", "p.otio", "--sidecar", "p.otio", "--copy", "-y"], 73),
      (["edit", "p.otio", "-o", "p.otio", "-y"], 73),
      (["edit", "p.otio", "-o", "take.mov", "--copy", "-y"], 73),
      (["edit", "p.otio", "-o", "hard.mov", "--copy", "-y"], 73),
      (["frames", "take.mov", "--csv", "take.mov", "-y"], 73),
      (["frames", "take.mov", "--at", "1", "-o", "{name}.mov", "-y"], 73),
      (["frames", "take.mov", "--at", "1", "-o", "x.png", "--csv", "./x.png", "-y"], 64),
      (["frames", "take.mov", "--at", "1", "--at", "1", "-o", "{index}.png", "-y"], 64),
      (["frames", "take.mov", "--at", "1", "-o", "-", "--csv", "-"], 64),
      (["record", "file:take.mov", "-o", "take.mov", "-y"], 73),
      (["record", "file:take.mov", "-o", "hard.mov", "-y"], 73),
      (["record", "synthetic", "-t", "1", "-o", "x.mov", "--report", "./x.mov", "-y"], 64),
      (["recover", "take.mov", "-o", "take.mov", "-y"], 73),
    ]
    let (names, bytes) = (try scratch.names(), try Data(contentsOf: scratch.url("take.mov")))
    for (line, status) in cases {
      let finished = try await run(slowmoPath, line, in: scratch.path)
      #expect(finished.status == status, "\(line): \(finished.errors)")
      #expect(
        finished.errors.contains(status == 73 ? "is read" : "two outputs")
          || finished.errors.contains("gives several frames one name"), "\(finished.errors)")
      #expect(try scratch.names() == names, "\(line)")
    }
    #expect(try Data(contentsOf: scratch.url("take.mov")) == bytes)
  }

  /// Command lines that write the file `NAME`, by file extension.
  private static let writers: [(suffix: String, line: [String])] = [
    ("mov", ["retime", "take.mov", "-o", "NAME", "--speed", "1/8", "--copy"]),
    (
      "mp4",
      ["retime", "take.mov", "-o", "NAME", "--range", "0..0.2", "--speed", "1", "--fps", "30"]
    ),
    ("otio", ["retime", "take.mov", "-o", "NAME", "--speed", "1/2"]),
    ("png", ["frames", "take.mov", "--at", "1", "-o", "NAME"]),
    ("csv", ["frames", "take.mov", "--csv", "NAME"]),
    (
      "mov",
      ["record", "synthetic:320x240@240?pace=max", "-o", "NAME", "-t", "0.1"]
    ),
    (
      "json",
      [
        "record", "synthetic:320x240@240?pace=max", "-o", "other.mov", "-t", "0.1", "--report",
        "NAME",
      ]
    ),
  ]

  @Test func `A replaced output file keeps its permissions`() async throws {
    for (suffix, words) in Self.writers {
      let scratch = try await prepared()
      let name = String(repeating: "n", count: 254 - suffix.count) + "." + suffix
      let line = words.map { $0 == "NAME" ? name : $0 } + ["--progress", "none"]
      let first = try await run(slowmoPath, line, in: scratch.path)
      #expect(first.status == 0, "\(line): \(first.errors)")
      let again = try await run(slowmoPath, line, in: scratch.path)
      #expect(again.status == 73, "\(line): \(again.errors)")
      let path = scratch.file(name)
      try FileManager.default.setAttributes([.posixPermissions: 0o604], ofItemAtPath: path)
      let names = try scratch.names()
      let replaced = try await run(slowmoPath, line + ["-y"], in: scratch.path)
      #expect(replaced.status == 0, "\(line): \(replaced.errors)")
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o604, "\(line)")
      #expect(try scratch.names() == names, "\(line)")
    }
  }

  @Test func `A full disk leaves the old file and no temporary file`() async throws {
    let scratch = try await prepared()
    for (suffix, words) in Self.writers where words.first != "record" {
      let path = scratch.file("old.\(suffix)")
      try Data("old".utf8).write(to: URL(fileURLWithPath: path))
      let names = try scratch.names()
      // A file can have at most one block of 512 bytes.
      let finished = try await run(
        "bash",
        ["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "bash", slowmoPath]
          + words.map { $0 == "NAME" ? "old.\(suffix)" : $0 } + ["-y", "--progress", "none"],
        in: scratch.path)
      #expect(finished.status == 74, "\(words): \(finished.errors)")
      #expect(finished.errors.contains("old.\(suffix)"), "\(finished.errors)")
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "old", "\(words)")
      #expect(try scratch.names() == names, "\(words)")
    }
  }

  @Test func `The output name - writes to standard output`() async throws {
    let scratch = try await prepared()
    func print(_ line: String...) async throws -> Finished {
      try await bash("\"$1\" \(line.joined(separator: " ")) > printed", in: scratch.path)
    }
    func printed() throws -> Data { try Data(contentsOf: scratch.url("printed")) }
    #expect(try await slowmo("frames", "take.mov", "--csv", "t.csv", in: scratch.path).status == 0)
    #expect(try await print("frames take.mov --csv -").status == 0)
    #expect(try printed() == Data(contentsOf: scratch.url("t.csv")))
    #expect(
      try await slowmo("frames", "take.mov", "--at", "1", "-o", "t.png", in: scratch.path).status
        == 0)
    let image = try Data(contentsOf: scratch.url("t.png"))
    #expect(try await print("frames take.mov --at 1 --at 1 -o -").status == 0)
    #expect(try printed() == image + image)
    #expect(try await print("retime take.mov --speed 1/2 -o -").status == 0)
    let project = try JSONSerialization.jsonObject(with: printed()) as? [String: Any]
    #expect(project?["OTIO_SCHEMA"] as? String == "Timeline.1")
    let recorded = try await print(
      "record 'synthetic:320x240@240?pace=max' -o r.mov --frames 24 --progress none --frames-csv -")
    #expect(recorded.status == 0 && recorded.errors.contains("24 frames"), "\(recorded.errors)")
    #expect(try String(decoding: printed(), as: UTF8.self).split(separator: "\n").count == 25)

    for line in [
      "retime take.mov --speed 1/2 --copy -o -", "retime take.mov --speed 1/2 --fps 30 -o -",
      "recover take.mov -o -", "record synthetic -t 1 -o -",
      "record synthetic -t 1 -o x.mov --report -", "frames take.mov --csv - --json",
      "frames take.mov --at 1 -o - --json", "retime take.mov --speed 1/2 -o - --json",
      "record synthetic -t 1 -o x.mov --frames-csv - --json",
    ] {
      let refused = try await run(
        slowmoPath, line.split(separator: " ").map(String.init), in: scratch.path)
      #expect(refused.status == 64, "\(line): \(refused.errors)\(refused.output)")
      #expect(
        (refused.errors + refused.output).contains(
          line.contains("--report -") ? "use --json" : "standard output"), "\(line)")
    }
    #expect(try await slowmo("frames", "take.mov", "--csv", "./-", in: scratch.path).status == 0)
    #expect(FileManager.default.fileExists(atPath: scratch.file("-")))
  }

  @Test func `File names that are not UTF-8 are kept byte for byte`() async throws {
    let scratch = try await prepared()
    let finished = try await bash(
      #"""
      set -e
      directory=$'d\xe9r' name=$'\xffz\xf4\x8f\xbe\x80'
      mkdir "$directory"
      mv take.mov "$directory/$name.mov"
      rm p.otio soft.mov hard.mov
      cd "$directory"
      in=$name.mov
      "$1" info "$in" --json > ../info.json
      "$1" info "$in" > /dev/null
      "$1" retime "$in" -o "slow$name.mov" --speed 1/8 --copy --progress none > ../output
      grep -qaF "slow$name.mov" ../output
      "$1" retime "$in" -o "p$name.otio" --preset impact --at 1 > /dev/null
      "$1" edit "p$name.otio" -o "clip$name.mov" --copy --progress none > /dev/null
      "$1" frames "$in" --at 1 -o $'{name}\xfe.png' --csv "c$name.csv" --progress none > ../output
      grep -qaF "$name"$'\xfe.png' ../output
      "$1" record "file:$in?pace=max" -o "r$name.mov" --frames 5 --report "r$name.json" \
        --exec 'cat {path} > copy' --progress none > /dev/null
      cmp copy "r$name.mov"
      "$1" recover "r$name.mov" > /dev/null
      ! "$1" info "no$name" 2> ../output
      grep -qaF "no$name" ../output
      [ "$("$1" retime "$in" -o "$in" --speed 1/8 --copy -y >/dev/null 2>&1; echo $?)" = 73 ]
      ls | LC_ALL=C sort > ../found
      for wanted in "$in" "slow$name.mov" "p$name.otio" "clip$name.mov" "$name"$'\xfe.png' \
        "c$name.csv" "r$name.mov" "r$name.json" copy; do echo "$wanted"; done \
        | LC_ALL=C sort > ../wanted
      cmp ../found ../wanted
      """#, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)\(finished.output)")
    let info = try #require(
      JSONSerialization.jsonObject(with: Data(contentsOf: scratch.url("info.json")))
        as? [String: Any])
    #expect((info["file"] as? String)?.contains("\u{FFFD}z") == true)
  }
}

extension Scratch {
  fileprivate func url(_ name: String) -> URL { URL(fileURLWithPath: file(name)) }
}
