// SPDX-License-Identifier: Apache-2.0

/// The name and version of a library loaded in this process.
public struct LibraryVersion: Hashable, Sendable {
  /// The library's name, such as `libavcodec`.
  public let name: String
  /// The library's version, such as `59.37.100`.
  public let version: String

  package init(_ name: String, _ version: String) { (self.name, self.version) = (name, version) }
}
