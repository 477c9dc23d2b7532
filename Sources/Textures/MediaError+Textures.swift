// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// The process has no renderer of OpenGL ES 3, or the renderer has failed.
  public static let noRenderer = Self(rawValue: "no_renderer")
}

extension MediaError {
  static func noRenderer(_ reason: String) -> MediaError {
    MediaError(
      .noRenderer, "cannot draw with OpenGL ES 3: \(reason)",
      recovery: "install Mesa's drivers (libgl1-mesa-dri)")
  }
}
