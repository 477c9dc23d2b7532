// SPDX-License-Identifier: Apache-2.0

/// A library that the process runs with.
public struct LibraryVersion: Hashable, Sendable {
  /// Its name: `libavcodec`.
  public let name: String
  /// Its version: `59.37.100`.
  public let version: String

  package init(_ name: String, _ version: String) { (self.name, self.version) = (name, version) }
}
