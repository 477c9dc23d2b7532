// SPDX-License-Identifier: Apache-2.0

/// A document that can also be printed as text lines.
protocol TextDocument {
  /// The lines of text.
  var lines: [String] { get }
}
