// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
public import OvercrankMediaCore

extension CaptureDevice {
  /// The most recently preferred camera among those present, or the default camera if none of those
  /// present was ever preferred.
  ///
  /// Corresponds to `AVCaptureDevice.userPreferredCamera`. Preferences are stored by ``id``, in a
  /// file shared by all programs of this user. If the file cannot be read, the default camera is
  /// returned. The value is nil if the machine has no camera.
  public static var userPreferredCamera: CaptureDevice? {
    PreferredCameras.current.latest(among: discover().filter { $0.media.contains(.video) })
      ?? defaultDevice(for: .video)
  }

  /// Stores a camera as the user's preferred camera.
  ///
  /// Up to 8 cameras are stored. If the most recently stored camera is missing, the camera stored
  /// before it is preferred. The file is `$XDG_STATE_HOME/overcrank/preferred-cameras`, by default
  /// in `~/.local/state`.
  ///
  /// - Throws: `MediaError` with `.notACaptureDevice` for a microphone or a device that
  ///   ``discover()`` does not list; `.notRemembered` if the file cannot be written.
  public static func setUserPreferredCamera(_ camera: CaptureDevice) throws(MediaError) {
    let isListed = camera.kind == .v4l2 || camera.id == synthetic.id
    guard camera.media.contains(.video), isListed else {
      throw MediaError(
        .notACaptureDevice, "\(camera.spokenName) is not a camera of this machine",
        recovery: Recovery("choose a listed camera", .listDevices))
    }
    try PreferredCameras.current.remember(camera)
  }
}

/// The file that lists the cameras that a user preferred, the latest first.
struct PreferredCameras: Sendable {
  /// The greatest number of stored cameras.
  static let capacity = 8

  /// The path of the file, or nil if neither `XDG_STATE_HOME` nor `HOME` is set.
  let path: String?

  /// The file of the current user.
  ///
  /// A test replaces it for its own Swift task.
  @TaskLocal static var current = PreferredCameras(
    stateDirectory: getenv("XDG_STATE_HOME").map { String(cString: $0) },
    home: getenv("HOME").map { String(cString: $0) })

  /// Locates the file that lists the preferred cameras.
  ///
  /// - Parameters:
  ///   - stateDirectory: The value of `XDG_STATE_HOME`. A path that is not absolute is ignored.
  ///   - home: The user's home directory.
  init(stateDirectory: String?, home: String?) {
    let isAbsolute = { (path: String) in path.hasPrefix("/") }
    let directory =
      stateDirectory.flatMap { isAbsolute($0) ? $0 : nil }
      ?? home.flatMap { isAbsolute($0) ? "\($0)/.local/state" : nil }
    path = directory.map { "\($0)/overcrank/preferred-cameras" }
  }

  /// The stored ids, the latest first.
  var ids: [String] {
    guard let path, let data = try? Data(contentsOf: URL(filePath: path)) else { return [] }
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
    return Array(lines.prefix(Self.capacity).map(String.init))
  }

  /// Among the given cameras, the one that was stored most recently; nil if none of them was
  /// stored.
  func latest(among cameras: [CaptureDevice]) -> CaptureDevice? {
    for id in ids {
      if let camera = cameras.first(where: { $0.id == id }) { return camera }
    }
    return nil
  }

  /// Stores a camera as the most recent one.
  func remember(_ camera: CaptureDevice) throws(MediaError) {
    guard let path else {
      throw MediaError(
        .notRemembered, "could not find a directory to store the preferred camera",
        recovery: "set HOME or XDG_STATE_HOME to a directory")
    }
    let lines = ([camera.id] + ids.filter { $0 != camera.id }).prefix(Self.capacity)
    let file = URL(filePath: path)
    do {
      // The XDG base directory specification requires mode 0700.
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      // The write is atomic, because another program may read the file at the same time.
      try Data(lines.map { "\($0)\n" }.joined().utf8).write(to: file, options: .atomic)
    } catch {
      throw MediaError(
        .notRemembered, "could not write \(path): \(error)",
        recovery: "check that its directory is writable")
    }
  }
}
