// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// `slowmo doctor` on a machine with real faults.
///
/// The checks run in memory (`/dev/shm`), so that a busy disk does not count as a fault.
struct DoctorTests {
  private struct Document: Decodable {
    struct Check: Decodable {
      let name: String
      let ok: Bool
      let found: String
      let advice: String?
    }
    let device: String?
    let checks: [Check]
    let ok: Bool

    var problems: [String] { checks.filter { !$0.ok }.map(\.name) }
  }

  /// Runs `doctor` with fake cameras, or with the cameras of the machine.
  private func doctor(
    _ cameras: String?, _ arguments: String, before: String = "", through wrapper: String = ""
  ) async throws -> (finished: Finished, document: Document) {
    var environment = ""
    if let cameras {
      environment = "FAKEVIDEO='\(cameras)' LD_PRELOAD=\(try await FakeCameras.library())"
    }
    let finished = try await bash(
      "\(before)\n\(wrapper) env \(environment) \"$1\" doctor --json \(arguments)")
    return (
      finished, try JSONDecoder().decode(Document.self, from: Data(finished.output.utf8))
    )
  }

  @Test func `The command doctor finds no problem with a working camera`() async throws {
    let (finished, document) = try await doctor("hfr-usb", "/dev/fakevideo0 --directory /dev/shm")
    #expect(document.problems == [] && document.ok, "\(finished.output)")
    #expect(finished.status == 0 && document.device == "/dev/fakevideo0")
    let found = document.checks.first { $0.name == "devices" }?.found ?? ""
    #expect(found.contains("1280x720@240/mjpg"), "\(found)")
  }

  @Test(arguments: [
    ("hfr-usb busy=1", "holders"), ("hfr-usb fail=QUERYCAP:EACCES", "permissions"),
  ])
  func `The command doctor reports a busy or inaccessible camera`(
    cameras: String, name: String
  ) async throws {
    let (finished, document) = try await doctor(cameras, "/dev/fakevideo0 --directory /dev/shm")
    #expect(finished.status == 10 && !document.ok, "\(finished.errors)")
    #expect(document.problems == [name], "\(finished.output)")
    let check = try #require(document.checks.first { $0.name == name })
    #expect(check.found.contains("/dev/fakevideo0") && check.advice != nil, "\(check)")
  }

  @Test func `The command doctor reports a small memory limit`() async throws {
    let (finished, document) = try await doctor(
      nil, "synthetic --directory /dev/shm", before: "ulimit -v 700000")
    #expect(document.problems == ["memory"], "\(finished.output)")
    #expect(finished.status == 10)
  }

  @Test func `The command doctor reports a slow disk`() async throws {
    let scratch = try Scratch(in: "/var/tmp")
    // The disk test syncs each block of 4 MiB. Here, each sync takes one more second.
    let (finished, document) = try await doctor(
      nil, "synthetic --directory '\(scratch.path)'",
      through: """
        strace -f -qq -o '\(scratch.file("trace"))' -e trace=fsync,fdatasync \
          -e inject=fsync,fdatasync:delay_enter=1000000
        """)
    #expect(document.problems == ["disk"], "\(finished.output) \(finished.errors)")
    #expect(finished.status == 10)
    #expect(try scratch.names() == ["trace"])
  }

  @Test func `Device errors suggest to run slowmo doctor`() async throws {
    for (cameras, code) in [
      ("hfr-usb busy=1", "device_busy"), ("hfr-usb fail=QUERYCAP:EACCES", "no_permission"),
    ] {
      let finished = try await bash(
        """
        FAKEVIDEO='\(cameras)' LD_PRELOAD=\(try await FakeCameras.library()) \
          "$1" record /dev/fakevideo0 -o never.mov --mode 640x360@120/mjpg --json
        """)
      let error = try #require(try finished.document()["error"] as? [String: String])
      #expect(error["code"] == code)
      #expect(error["hint"]?.contains("(slowmo doctor /dev/fakevideo0)") == true, "\(error)")
    }
  }

  @Test func `The command doctor fails on a missing device or directory`() async throws {
    let device = try await slowmo("doctor", "/dev/video99", "--json")
    #expect(device.status == 69 && device.output.contains("device_not_found"))
    let directory = try await slowmo("doctor", "--directory", "/nowhere")
    #expect(directory.status == 66 && directory.errors.contains("/nowhere"))
  }
}
