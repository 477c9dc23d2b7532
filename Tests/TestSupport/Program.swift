// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The programs that are installed on this machine.
package enum Program {
  /// Whether PATH has a program of this name.
  package static func isInstalled(_ name: String) -> Bool {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
      .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
  }
}
