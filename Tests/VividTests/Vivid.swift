// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The machine under test: one with the kernel's virtual V4L2 driver loaded.
enum Vivid {
  /// The first node of a vivid capture device, or nil where there is none.
  static var node: String? { nodes.first }

  /// The first of those that describe pictures by planes, or nil where vivid was not told to.
  static let multiPlanarNode: String? = {
    // 2 for each device that does; the driver says it of itself only to who opens it.
    let path = "/sys/module/vivid/parameters/multiplanar"
    let values =
      (try? String(contentsOfFile: path, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines).split(separator: ",") ?? []
    return zip(nodes, values).first { $0.1 == "2" }?.0
  }()

  private static let nodes: [String] = {
    let folder = "/sys/class/video4linux"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return
      names
      .filter { name in
        let title = try? String(contentsOfFile: "\(folder)/\(name)/name", encoding: .utf8)
        return title?.contains("vivid") == true && title?.contains("-vid-cap") == true
      }
      .sorted { $0.localizedStandardCompare($1) == .orderedAscending }
      .map { "/dev/\($0)" }
  }()

  static var isPresent: Bool { node != nil }

  static let driver = "/sys/bus/platform/drivers/vivid"
  /// Whether this user may take vivid out, and put it in.
  static var isPluggable: Bool { access("\(driver)/unbind", W_OK) == 0 }
  static let whyNotPluggable: Comment = "only root can put vivid back"

  /// Takes vivid out and puts it in until it has its first number again, which it gets when nobody
  /// has it open any more, and does what udev would do.
  ///
  /// - Throws: Where the kernel refuses.
  static func plugAgain() async throws {
    let script = """
      cd "$2"
      until
        echo vivid.0 >unbind && echo vivid.0 >bind || exit 1
        [ -e "$1" ]
      do
        sleep 0.1
      done
      chgrp video /dev/video* && chmod 660 /dev/video*
      """
    let done = try await run("sh", ["-c", script, "sh", node ?? "", driver])
    try #require(done.status == 0, "\(done.errors)")
  }

  /// Printed beside every test that a machine without vivid does not run.
  static let whyNot: String =
    "no vivid device here: run Tests/Tools/Lab/run-tests.sh, or load it with sudo modprobe vivid"

  /// A folder in memory, where the emulated machine runs these: its share would hold captures up.
  static let folder = NSTemporaryDirectory()
}

/// One after the other, because there is one camera.
@Suite(.serialized, .enabled(if: Vivid.isPresent, "\(Vivid.whyNot)"))
enum VividTests {}
