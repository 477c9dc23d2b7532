// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

extension VividTests {
  @Suite struct Hotplug {
    @Test(.enabled(if: Vivid.isPluggable, Vivid.whyNotPluggable))
    func `Watching devices reports when vivid is unbound and bound`() async throws {
      let node = Vivid.node ?? ""
      // Each step of the script waits for the output line that the previous step causes.
      let script = """
        cd "$3"
        "$1" devices --watch --json >"$4" &
        watching=$!
        changes=$4
        lines() {
          until [ "$(grep -c "$1" "$changes")" -ge "$2" ]; do
            kill -0 $watching || exit 3
            sleep 0.1
          done
        }
        lines synthetic 1
        echo vivid.0 >unbind
        lines "removed.*$2\\"" 1
        echo vivid.0 >bind
        lines "added.*$2\\"" 2
        kill -INT $watching
        wait $watching
        status=$?
        # What udev would do.
        chgrp video /dev/video* && chmod 660 /dev/video*
        exit $status
        """
      let file = "\(Vivid.directory)/changes.txt"
      let finished = try await run(
        "bash", ["-c", script, "bash", slowmoPath, node, Vivid.driver, file])
      #expect(finished.status == 0, "\(finished.errors)")
      let events = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        .compactMap { line in
          try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        }
        .filter { $0["path"] as? String == node }
      print("vivid: \(events.compactMap { $0["event"] as? String })")
      #expect(events.compactMap { $0["event"] as? String } == ["added", "removed", "added"])
      #expect(Set(events.compactMap { $0["id"] as? String }).count == 1)
    }
  }
}
