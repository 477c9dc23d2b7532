// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Passthrough exports that are killed while the kernel copies most of the packets.
struct ExportKillTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `A killed export leaves a complete file or none`() async throws {
    // The times of the kills are distributed evenly over the duration of the first export.
    let finished = try await bash(
      """
      "$1" record 'synthetic:640x480@240?pace=max' -t 1 -o clip.mov --progress none >/dev/null
      export() { exec "$slowmo" retime clip.mov -o "$1" --speed 1/8 --copy --pitch varispeed \
        --progress none >/dev/null; }
      slowmo=$1
      start=${EPOCHREALTIME/[.,]/}
      (export whole.mov)
      took=$((${EPOCHREALTIME/[.,]/} - start))
      for number in {0..49}; do
        export killed.mov &
        delay=$((took * number / 50))
        sleep $((delay / 1000000)).$(printf %06d $((delay % 1000000)))
        kill -KILL $!
        wait $! && echo finished || echo killed
        if [ -e killed.mov ]; then
          cmp whole.mov killed.mov && echo whole
          rm killed.mov
        fi
      done
      """, in: scratch.path)
    let lines = finished.output.split(separator: "\n")
    let count = { word in lines.count { $0 == word } }
    #expect(count("killed") + count("finished") == 50, "\(finished.errors)")
    #expect(count("killed") > 0)
    // The output has only these lines, so `cmp` has printed no difference.
    #expect(lines.allSatisfy { ["killed", "finished", "whole"].contains($0) }, "\(lines)")
    #expect(count("whole") >= count("finished"))
    #expect(!finished.errors.contains("cmp"), "\(finished.errors)")
  }
}
