// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Completions that the shell bash offers.
struct CompletionTests {
  /// Sources the generated completion script, and completes the last word of each line with the
  /// function that the script defines.
  private static let script = """
    source <("$1" --generate-completion-script bash)
    function=$(complete -p slowmo | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
    while IFS= read -r COMP_LINE; do
      read -ra COMP_WORDS <<<"$COMP_LINE"
      [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
      COMP_POINT=${#COMP_LINE}
      COMPREPLY=()
      "$function" slowmo "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf '%s:' "$COMP_LINE"
      printf ' <%s>' "${COMPREPLY[@]}"
      echo
    done <"$2"
    """

  private static let modes = " <1280x720@240/grey> <1280x720@240/mjpg> <1280x720@240/yuyv>"
  private static let exposures = " <auto_exposure=1> <auto_exposure=3> <auto_exposure=default>"

  @Test func `Shell completion offers files and known option values`() async throws {
    let scratch = try Scratch()
    for name in ["take one.mov", "take.mov", "take.json"] { _ = try scratch.write([], as: name) }
    try FileManager.default.createDirectory(
      atPath: scratch.file("takes"), withIntermediateDirectories: true)
    let marked = try await Takes.marked()
    let files = " <take one.mov> <take.json> <take.mov> <takes>"
    let wanted = [
      "slowmo info ta": files, "slowmo retime ta": files, "slowmo retime take.mov -o ta": files,
      "slowmo retime --copy ta": files, "slowmo retime take.mov --output ta": files,
      "slowmo retime take.mov --sidecar ta": files, "slowmo edit ta": files,
      "slowmo edit take.mov -o ta": files, "slowmo frames ta": files,
      "slowmo frames take.mov -o ta": files, "slowmo frames take.mov --csv ta": files,
      "slowmo recover ta": files, "slowmo recover take.mov -o ta": files,
      "slowmo record file:ta":
        " <file:take\\ one.mov> <file:take.json> <file:take.mov> <file:takes/>",
      "slowmo record synthetic -o ta": files,
      "slowmo record synthetic --report ta": files,
      "slowmo record synthetic --frames-csv ta": files, "slowmo bench diff ta": files,
      "slowmo bench diff take.json ta": files,
      "slowmo bench capture --folder ta": " <takes>",
      "slowmo retime take.mov --preset f": " <freeze>",
      "slowmo frames take.mov --rotation ": " <keep> <apply>",
      "slowmo retime take.mov --speed ": " <>", "slowmo rec": " <record> <recover>",
      "slowmo modes synth": " <synthetic>", "slowmo controls synth": " <synthetic>",
      "slowmo bench capture synth": " <synthetic>", "slowmo doctor synth": " <synthetic>",
      "slowmo record synthetic:1280x720@2": " <synthetic:1280x720@240>",
      "slowmo record /dev/fakevideo1 -o a.mov --mode 640x400@4": " <640x400@480/grey>",
      "slowmo record -o a.mov /dev/fakevideo1 --mode 640x400@4": " <640x400@480/grey>",
      "slowmo bench capture --mode 1280x720@2": Self.modes,
      "slowmo controls /dev/fakevideo0 gai": " <gain=>",
      "slowmo controls /dev/fakevideo0 auto_exposure=": Self.exposures,
      "slowmo record synthetic --audio n": " <none>",
      "slowmo frames \(marked) --at @": " <@mark1> <@mark2>",
      "slowmo frames \(marked) --at ": " <@mark1> <@mark2>",
      "slowmo retime \(marked) --range @mark1..@": " <@mark1..@mark1> <@mark1..@mark2>",
      "slowmo play \(marked) --range @mark1..@": " <@mark1..@mark1> <@mark1..@mark2>",
      "slowmo play \(marked) --range @mark1-0.2..@": " <@mark1-0.2..@mark1> <@mark1-0.2..@mark2>",
      "slowmo frames \(marked) --at 1": " <>",
      "slowmo retime \(marked) --ramp @": " <@mark1=> <@mark2=>",
      "slowmo retime \(marked) --ramp ": " <@mark1=> <@mark2=>",
    ]
    let lines = wanted.keys.sorted()
    let list = try scratch.write(
      Array((lines.joined(separator: "\n") + "\n").utf8), as: ".lines")
    // The shell runs this wrapper as `slowmo`, so that the command finds the fake cameras.
    try FileManager.default.createDirectory(
      atPath: scratch.file(".bin"), withIntermediateDirectories: false)
    let program = try scratch.write(
      Array(
        """
        #!/bin/sh
        FAKEVIDEO='hfr-usb; mono-hfr' LD_PRELOAD=\(try await FakeCameras.library()) \
          exec '\(slowmoPath)' "$@"

        """.utf8), as: ".bin/slowmo")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let finished = try await bash("PATH=$PWD/.bin:$PATH\n" + Self.script, list, in: scratch.path)
    #expect(finished.status == 0 && finished.errors.isEmpty, "\(finished.errors)")
    let found = finished.output.split(separator: "\n").map(String.init)
    #expect(found.count == lines.count)
    for (line, found) in zip(lines, found) {
      let (name, offered) = (line + ":", wanted[line] ?? "")
      try #require(found.hasPrefix(name))
      let names = found.dropFirst(name.count).split(separator: ">").sorted()
      #expect(names == offered.split(separator: ">").sorted(), "\(found)")
    }
  }
}
