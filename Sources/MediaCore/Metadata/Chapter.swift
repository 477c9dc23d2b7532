// SPDX-License-Identifier: Apache-2.0

/// A named part of a movie.
public struct Chapter: Hashable, Sendable {
  /// Its name; empty where it has none.
  public let title: String
  /// Where it starts, in seconds of the file.
  public let start: Rational
  /// Where it ends, in seconds of the file.
  public let end: Rational

  package init(title: String, start: Rational, end: Rational) {
    (self.title, self.start, self.end) = (title, start, end)
  }
}
