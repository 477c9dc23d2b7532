// SPDX-License-Identifier: Apache-2.0

/// A named part of a movie.
public struct Chapter: Hashable, Sendable {
  /// The chapter's title; empty if the file has none.
  public let title: String
  /// The start of the chapter in seconds, on the time axis of the file.
  public let start: Rational
  /// The end of the chapter in seconds, on the time axis of the file.
  public let end: Rational

  package init(title: String, start: Rational, end: Rational) {
    (self.title, self.start, self.end) = (title, start, end)
  }
}
