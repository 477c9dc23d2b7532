// SPDX-License-Identifier: Apache-2.0

/// A document that can also be told in lines.
protocol TextDocument {
  /// The same for people.
  var lines: [String] { get }
}
