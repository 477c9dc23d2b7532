// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The text of `--version`: the version of the command and the versions of the linked libraries.
enum VersionText {
  static let number = "0.1.0"

  static var text: String {
    (["slowmo \(number)"] + LinkedLibraries.versions.map { "\($0.name) \($0.version)" })
      .joined(separator: "\n")
  }
}
