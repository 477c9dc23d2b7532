// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// The process has no screen to open a window on.
  public static let noDisplay = Self(rawValue: "no_display")
}

extension MediaError {
  static func noDisplay(_ reason: String) -> MediaError {
    MediaError(.noDisplay, "cannot open a window: \(reason)")
  }
}
