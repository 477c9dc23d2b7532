// SPDX-License-Identifier: Apache-2.0

/// The version of the library and of the `slowmo` command.
///
/// It follows semantic versioning. The first number changes when a public symbol, an option, a JSON
/// key, an error code or an exit code changes its meaning or is removed. The second number changes
/// when any of these is added.
public enum OvercrankVersion {
  /// The version number, such as `1.2.0`.
  public static let number = "0.1.0"
}
