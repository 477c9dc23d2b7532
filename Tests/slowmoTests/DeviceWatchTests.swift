// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The output and the end of `devices --watch`.
struct DeviceWatchTests {
  /// Runs `devices --watch` until the synthetic camera is listed, then sends a signal.
  private func watch(_ options: String, signal: String = "INT") async throws -> Finished {
    let scratch = try Scratch()
    let script = """
      lines=$2
      "$1" devices --watch \(options) >"$lines" &
      watching=$!
      await 'grep -q synthetic "$lines"' $watching
      kill -\(signal) $watching
      wait $watching
      status=$?
      cat "$2"
      exit $status
      """
    return try await bash(script, scratch.file("lines"))
  }

  @Test(arguments: ["INT", "TERM"])
  func `A signal ends devices --watch after it listed all devices`(signal: String) async throws {
    let finished = try await watch("", signal: signal)
    #expect(finished.status == 0, "\(finished.errors)")
    let last = try #require(finished.output.split(separator: "\n").last)
    #expect(last == "added  synthetic  Synthetic camera  (synthetic)")
  }

  @Test func `Each JSON line of devices --watch matches its schema`() async throws {
    let finished = try await watch("--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n")
    let devices = try await slowmo("devices", "--json").document()["devices"] as? [Any]
    #expect(lines.count == devices?.count)
    let script = """
      import json, jsonschema, sys
      schema = json.load(open(sys.argv[1]))
      jsonschema.Draft202012Validator.check_schema(schema)
      for line in sys.argv[2:]:
        jsonschema.Draft202012Validator(schema).validate(json.loads(line))
      """
    let schema = "\(checkout)/Sources/slowmo/Schemas/devices.event.schema.json"
    let valid = try await run(
      "/usr/bin/python3", ["-c", script, schema] + lines.map(String.init))
    #expect(valid.status == 0, "\(valid.errors)")
    let gone = #"{"schema":"slowmo.devices.event/1","event":"removed","id":"a","path":null}"#
    let invalid = try await run("/usr/bin/python3", ["-c", script, schema, gone])
    #expect(invalid.status != 0, "a removed device without its key passed")
  }

  @Test func `A closed pipe ends devices --watch without an error`() async throws {
    // The pipe has no reader, right from the start.
    let script = """
      import os, subprocess, sys
      reader, writer = os.pipe()
      os.close(reader)
      sys.exit(subprocess.run([sys.argv[1], "devices", "--watch"], stdout=writer).returncode)
      """
    let finished = try await run("python3", ["-c", script, slowmoPath])
    #expect(finished.status == 0 && finished.errors.isEmpty, "\(finished.errors)")
  }
}
