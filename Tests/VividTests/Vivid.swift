// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A machine on which the kernel's virtual V4L2 driver, vivid, is loaded.
enum Vivid {
  /// The first node of a vivid capture device, or nil.
  static var node: String? { nodes.first }

  /// The first multi-planar node of vivid; nil if vivid was loaded without one.
  static let multiPlanarNode: String? = {
    // The value 2 is a multi-planar device. Without this file, the device would have to be opened.
    let path = "/sys/module/vivid/parameters/multiplanar"
    let values =
      (try? String(contentsOfFile: path, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines).split(separator: ",") ?? []
    return zip(nodes, values).first { $0.1 == "2" }?.0
  }()

  private static let nodes: [String] = {
    let directory = "/sys/class/video4linux"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return
      names
      .filter { name in
        let title = try? String(contentsOfFile: "\(directory)/\(name)/name", encoding: .utf8)
        return title?.contains("vivid") == true && title?.contains("-vid-cap") == true
      }
      .sorted { $0.localizedStandardCompare($1) == .orderedAscending }
      .map { "/dev/\($0)" }
  }()

  static var isPresent: Bool { node != nil }

  static let driver = "/sys/bus/platform/drivers/vivid"
  /// Whether this user may unbind and bind vivid.
  static var isPluggable: Bool { access("\(driver)/unbind", W_OK) == 0 }
  static let whyNotPluggable: Comment = "only root can put vivid back"

  /// Unbinds and binds vivid until its device has its first number again, and then sets permissions
  /// as udev does.
  ///
  /// The device gets this number only while no process has the old one open.
  ///
  /// - Throws: An error when the kernel refuses.
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

  /// The reason that is printed with every test that is skipped on a machine without vivid.
  static let whyNot: String =
    "no vivid device here: run Tests/Tools/Lab/run-tests.sh, or load it with sudo modprobe vivid"

  /// A directory in memory.
  ///
  /// The directory that the emulated machine shares with the host is too slow.
  static let directory = NSTemporaryDirectory()
}

/// Tests that use the same camera, and therefore run one after the other.
@Suite(.serialized, .enabled(if: Vivid.isPresent, "\(Vivid.whyNot)"))
enum VividTests {}
