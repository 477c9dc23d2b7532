// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
public import OvercrankMediaCore

extension CaptureDevice {
  /// The camera that the user chose last of those that are there; where none is, the best other.
  ///
  /// The choices of this user are remembered from program to program, by ``id``; nil where there
  /// is no camera. The counterpart of `AVCaptureDevice.userPreferredCamera`. A memory that cannot
  /// be read is none.
  public static var userPreferredCamera: CaptureDevice? {
    PreferredCameras.current.latest(among: discover().filter { $0.media.contains(.video) })
      ?? defaultDevice(for: .video)
  }

  /// Remembers a camera as the one that the user prefers.
  ///
  /// A few of those before are remembered, too, for when this one is not there. They are lines of
  /// `$XDG_STATE_HOME/overcrank/preferred-cameras`, by default below `~/.local/state`.
  ///
  /// - Throws: `MediaError` with `.notACaptureDevice` for a microphone, and for what
  ///   ``discover()`` does not list; `.notRemembered` where the file cannot be written.
  public static func setUserPreferredCamera(_ camera: CaptureDevice) throws(MediaError) {
    let isListed = camera.kind == .v4l2 || camera.id == synthetic.id
    guard camera.media.contains(.video), isListed else {
      throw MediaError(
        .notACaptureDevice, "\(camera.spokenName) is no camera of this machine",
        recovery: Recovery("choose a camera that is listed", .listDevices))
    }
    try PreferredCameras.current.remember(camera)
  }
}

/// The cameras that a user chose, the latest first, in a file.
struct PreferredCameras: Sendable {
  /// Those that are remembered.
  static let capacity = 8

  /// The file; nil where the system names no place for it.
  let path: String?

  /// The user's own, unless a test puts another in its place for its task.
  @TaskLocal static var current = PreferredCameras(
    stateFolder: getenv("XDG_STATE_HOME").map { String(cString: $0) },
    home: getenv("HOME").map { String(cString: $0) })

  /// - Parameters:
  ///   - stateFolder: What `XDG_STATE_HOME` says; what is no absolute path says nothing.
  ///   - home: The user's folder.
  init(stateFolder: String?, home: String?) {
    let isAbsolute = { (path: String) in path.hasPrefix("/") }
    let folder =
      stateFolder.flatMap { isAbsolute($0) ? $0 : nil }
      ?? home.flatMap { isAbsolute($0) ? "\($0)/.local/state" : nil }
    path = folder.map { "\($0)/overcrank/preferred-cameras" }
  }

  /// The ids, the latest first.
  var ids: [String] {
    guard let path, let data = try? Data(contentsOf: URL(filePath: path)) else { return [] }
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
    return Array(lines.prefix(Self.capacity).map(String.init))
  }

  /// The camera of some that was chosen last.
  func latest(among cameras: [CaptureDevice]) -> CaptureDevice? {
    for id in ids {
      if let camera = cameras.first(where: { $0.id == id }) { return camera }
    }
    return nil
  }

  /// Puts a camera before all others.
  func remember(_ camera: CaptureDevice) throws(MediaError) {
    guard let path else {
      throw MediaError(
        .notRemembered, "There is no folder to remember the camera in",
        recovery: "set HOME or XDG_STATE_HOME to the path of one")
    }
    let lines = ([camera.id] + ids.filter { $0 != camera.id }).prefix(Self.capacity)
    let file = URL(filePath: path)
    do {
      // Others have no business with what a user does; the standard says 0700.
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      // Whole or not at all: another program may be reading it.
      try Data(lines.map { "\($0)\n" }.joined().utf8).write(to: file, options: .atomic)
    } catch {
      throw MediaError(
        .notRemembered, "Could not write \(path): \(error)",
        recovery: "look whether its folder may be written to")
    }
  }
}
