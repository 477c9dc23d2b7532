// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The user's directory for images, as xdg-user-dirs defines it.
enum UserImageDirectory {
  /// The name of the directory's entry in `user-dirs.dirs`, and of the environment variable.
  private static let variable = "XDG_PICTURES_DIR"
  /// The greatest number of different file names for photos with the same time.
  private static let attempts = 10_000

  /// Returns the path of the directory.
  ///
  /// - Parameter environment: Returns the value of an environment variable, or nil.
  /// - Returns: The path, whether or not the directory exists.
  /// - Throws: `MediaError` with `.cannotCreate` if the user has no home directory.
  static func path(
    _ environment: (String) -> String? = { name in
      getenv(name).map { String(systemPath: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
  ) throws(MediaError) -> String {
    if let path = environment(variable), path.hasPrefix("/") { return path }
    guard let home = environment("HOME") else {
      throw MediaError(
        .cannotCreate, "the user has no home directory for photos",
        recovery: "name a file for the photo")
    }
    let configuration = environment("XDG_CONFIG_HOME") ?? "\(home)/.config"
    let text =
      (try? String(contentsOfFile: "\(configuration)/user-dirs.dirs", encoding: .utf8)) ?? ""
    return path(in: text, home: home) ?? "\(home)/Pictures"
  }

  /// Reads the path from the text of `user-dirs.dirs`.
  ///
  /// Returns nil if the text states none.
  static func path(in text: String, home: String) -> String? {
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].filter({ $0 != " " }) == variable else { continue }
      let value = parts[1].filter { $0 != "\"" }
      if value.hasPrefix("$HOME/") { return home + value.dropFirst("$HOME".count) }
      // Besides paths relative to the home directory, the specification also allows absolute paths.
      if value.hasPrefix("/") { return value }
    }
    return nil
  }

  /// Returns the first path for a photo that is used neither by a photo nor by its movie.
  ///
  /// - Throws: `MediaError` with `.cannotCreate` if the user has no home directory.
  static func unusedPath(for photo: Photo) throws(MediaError) -> String {
    let directory = try path()
    let paths = (1...attempts).lazy.map { path(of: photo, in: directory, attempt: $0) }
    func isUsed(_ path: String) -> Bool { access(path.systemPath, F_OK) == 0 }
    return paths.first { !isUsed($0) && !isUsed("\($0.withoutExtension).mov") }
      ?? path(of: photo, in: directory, attempt: attempts)
  }

  /// Writes a photo to a new file in the directory.
  ///
  /// - Parameters:
  ///   - photo: The photo, whose property `path` is set.
  ///   - path: The path that ``unusedPath(for:)`` returned. If another program has used this path
  ///     meanwhile, the next unused path is taken.
  /// - Throws: `MediaError` if the file cannot be written.
  static func store(_ photo: inout Photo, at path: String) throws(MediaError) {
    let directory = path.parentDirectory
    makeDirectory(directory)
    var path = path
    for attempt in 1...attempts {
      do throws(MediaError) {
        return try PhotoWriter.write(&photo, to: path, false)
      } catch {
        guard error.code == .outputExists, attempt < attempts else { throw error }
        path = Self.path(of: photo, in: directory, attempt: attempt)
      }
    }
  }

  private static func path(of photo: Photo, in directory: String, attempt: Int) -> String {
    let suffix = attempt == 1 ? "" : "_\(attempt)"
    return "\(directory)/IMG_\(stamp(of: photo))\(suffix).\(photo.format.fileExtension)"
  }

  /// The capture time as `20260131_140509` in UTC.
  private static func stamp(of photo: Photo) -> String {
    let date = photo.exif["DateTimeOriginal"] ?? "\(photo.uniqueID)"
    return String(date.map { $0 == " " ? "_" : $0 }.filter { $0 != ":" && $0 != "/" })
  }

  /// Creates a directory, and the missing directories above it.
  ///
  /// Errors are ignored here, because writing the file reports them.
  private static func makeDirectory(_ path: String) {
    guard access(path.systemPath, F_OK) != 0 else { return }
    let parent = path.parentDirectory
    if parent != path, parent != "." { makeDirectory(parent) }
    mkdir(path.systemPath, 0o755)
  }
}
