// SPDX-License-Identifier: Apache-2.0

/// Checks movies with other programs.
package enum MovieCheck {
  /// Returns the faults in the boxes of movies, according to `box-check.py`; empty for none.
  package static func boxes(_ paths: [String]) async throws -> String {
    let checked = try await run(
      "python3", ["\(checkout)/Tests/Tools/BoxCheck/box-check.py"] + paths)
    return checked.status == 0 ? "" : checked.output + checked.errors
  }
}
