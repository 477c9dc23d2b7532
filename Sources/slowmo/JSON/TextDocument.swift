// SPDX-License-Identifier: Apache-2.0

/// A document that can also be printed as text lines.
protocol TextDocument {
  /// The document as text lines.
  var lines: [String] { get }
}
