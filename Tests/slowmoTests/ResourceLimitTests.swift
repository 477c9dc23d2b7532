// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The resource limits that a shell sets with ulimit.
struct ResourceLimitTests {
  @Test func `A file size limit of the shell ends a take with an error`() async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      ulimit -f 1000  # Blocks of 1 KiB.
      "$1" record 'synthetic:640x480@240?pace=max' -o a.mov -t 60 --json
      """, in: scratch.path)
    #expect(finished.status == 74, "\(finished.status) \(finished.errors)")
    let report = try finished.document()
    #expect(report["playable"] as? Bool == true)
    let export = try await bash(
      """
      "$1" record 'synthetic:640x480@240?pace=max' -o b.mov -t 1 --progress none >/dev/null
      ulimit -f 100
      "$1" retime b.mov -o c.mov --speed 1/2 --copy
      """, in: scratch.path)
    #expect(export.status == 74, "\(export.status) \(export.errors)")
    #expect(try scratch.names() == ["a.mov", "b.mov"])
  }

  @Test(arguments: [4, 6, 8, 10, 12, 16, 24])
  func `A low limit of open files never leaves an unplayable movie`(count: Int) async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      ulimit -n \(count)
      "$1" record 'synthetic:160x120@240?pace=max' -o a.mov -t 0.2
      """, in: scratch.path)
    #expect([0, 69, 70, 73, 74].contains(finished.status), "\(finished.status) \(finished.errors)")
    let names = try scratch.names()
    #expect(names == ["a.mov"] || (finished.status != 0 && names.isEmpty), "\(names)")
    if finished.status != 0 { #expect(!finished.errors.isEmpty) }
    guard names == ["a.mov"] else { return }
    // A take that could not be finalized is still playable.
    let info = try await slowmo("info", "a.mov", "--json", in: scratch.path).document()
    #expect((info["video"] as? [String: Any])?["frame_count"] as? Int == 48)
  }

  @Test func `A low memory limit never makes a recording hang`() async throws {
    let scratch = try Scratch()
    // The lowest limit only suffices to load the program, and the highest suffices for a short
    // take. The exit status is 127 if the loader lacks memory.
    let finished = try await bash(
      """
      for mebibytes in $(seq 205 6 320); do
        (
          ulimit -v $((mebibytes * 1024))
          timeout -k 1 300 "$1" record 'synthetic:160x120@240?pace=max' \
            -o $mebibytes.mov -t 0.1
        ) >/dev/null 2>&1
        echo "$?"
      done
      """, in: scratch.path)
    let statuses = finished.output.split(separator: "\n").compactMap { Int($0) }
    #expect(statuses.count == 20)
    #expect(statuses.allSatisfy { [0, 69, 127].contains($0) }, "\(statuses)")
  }

  @Test func `A short burst fits a memory limit of 1.5 GB`() async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      ulimit -v 1500000  # KiB
      "$1" record 'synthetic:320x240@240?pace=max' -o a.mov -t 0.5 --burst --json
      """, in: scratch.path)
    #expect(finished.status == 0, "\(finished.status) \(finished.errors)")
    #expect((try finished.document()["ledger"] as? [String: Int])?["stored"] == 120)
  }

  @Test(.enabled(if: geteuid() == 0, "only root changes users and mounts"))
  func `A command without /proc mounted ends with an error`() async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      mkdir empty
      unshare -m bash -c 'mount --make-rprivate / && mount --bind empty /proc && "$0" devices' "$1"
      """, in: scratch.path)
    #expect(finished.status == 69, "\(finished.status) \(finished.errors)")
    #expect(finished.output.isEmpty)
    #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
    #expect(finished.errors.contains("/proc is not mounted"))
  }

  @Test(.enabled(if: geteuid() == 0, "only root changes users and mounts"))
  func `A command that cannot start a thread ends with an error`() async throws {
    // The command runs as a user without other processes, since limits on processes do not apply to
    // root.
    let limited = """
      exec setpriv --reuid=64999 --regid=64999 --clear-groups prlimit --nproc=$2 "$1" devices --json
      """
    for count in [1, 3] {
      let finished = try await bash(limited, "\(count)")
      #expect(finished.status == 69, "\(finished.status) \(finished.errors)")
      let error = try finished.document()["error"] as? [String: Any]
      #expect(error?["code"] as? String == "too_many_threads", "\(finished.output)")
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root changes users and mounts"))
  func `An edit that later cannot start a thread ends with an error`() async throws {
    let scratch = try Scratch()
    // The limit on threads is lowered while the program waits for its project.
    let finished = try await bash(
      """
      chmod 777 .
      mkfifo project.otio
      other='setpriv --reuid=64998 --regid=64998 --clear-groups'
      $other "$1" edit project.otio -o out.mp4 --fps 30 &
      edit=$!
      await 'ls -l /proc/'$edit'/fd 2>/dev/null | grep -q project.otio' $edit
      $other prlimit --pid $edit --nproc=1
      "$1" retime "$2" -o p.otio --range 1..1.1 --speed 1/4 >/dev/null
      cat p.otio >project.otio
      wait $edit
      """, try await Takes.plain(), in: scratch.path)
    // The thread that cannot start may belong to a decoder.
    #expect([69, 74].contains(finished.status), "\(finished.status) \(finished.errors)")
    #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
  }

  @Test func `A low memory limit ends exports and photos with an error`() async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      for mebibytes in $(seq 330 50 480); do
        for line in "retime $2 -o $mebibytes.mp4 --range 1..1.1 --speed 1/4 --fps 30" \
          "photo synthetic:160x120@60 -o $mebibytes.jpg --live"; do
          (ulimit -v $((mebibytes * 1024)); timeout -k 1 300 "$1" $line --json >/dev/null 2>errors)
          echo "$? $(grep -vc '^slowmo: ' errors) $(wc -l <errors)"
        done
      done
      """, try await Takes.plain(), in: scratch.path)
    let lines = finished.output.split(separator: "\n")
    #expect(lines.count == 8)
    for line in lines {
      let numbers = line.split(separator: " ").compactMap { Int($0) }
      try #require(numbers.count == 3, "\(line)")
      #expect([0, 69, 70, 74].contains(numbers[0]), "\(finished.output)")
      #expect(numbers[1] == 0 && numbers[2] <= 1, "\(finished.output)")
    }
  }
}
