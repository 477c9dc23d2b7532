// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// The machine under test: one with the kernel's virtual V4L2 driver loaded.
enum Vivid {
  /// The first node of a vivid capture device, or nil where there is none.
  static let node: String? = {
    let folder = "/sys/class/video4linux"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return
      names
      .filter { name in
        let title = try? String(contentsOfFile: "\(folder)/\(name)/name", encoding: .utf8)
        return title?.contains("vivid") == true && title?.contains("-vid-cap") == true
      }
      .sorted { $0.localizedStandardCompare($1) == .orderedAscending }
      .first.map { "/dev/\($0)" }
  }()

  static var isPresent: Bool { node != nil }

  /// Printed beside every test that a machine without vivid does not run.
  static let whyNot: String =
    "no vivid device here: run Tests/Lab/run-tests.sh, or load it with sudo modprobe vivid"

  /// A folder that may be written to.
  static let folder =
    ProcessInfo.processInfo.environment["LAB_OUT"] ?? NSTemporaryDirectory()
}

/// One after the other, because there is one camera.
@Suite(.serialized, .enabled(if: Vivid.isPresent, "\(Vivid.whyNot)"))
enum VividTests {}
