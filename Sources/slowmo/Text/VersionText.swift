// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// What `--version` prints: the command's own version, and those of the libraries it runs with.
enum VersionText {
  static let number = "0.1.0"

  static var text: String {
    (["slowmo \(number)"] + LinkedLibraries.versions.map { "\($0.name) \($0.version)" })
      .joined(separator: "\n")
  }
}
