// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The text of `--version`: the version of the command and the versions of the linked libraries.
enum VersionText {
  static var text: String {
    let libraries = LinkedLibraries.versions.map { "\($0.name) \($0.version)" }
    return (["slowmo \(OvercrankVersion.number)"] + libraries).joined(separator: "\n")
  }
}
