// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import SystemPackage

/// Converts the paths of movies between project files and this process.
///
/// A relative path in a project is relative to the directory of the project file.
enum ProjectPaths {
  /// Resolves a path in a project file against the project's directory.
  static func resolved(_ path: String, in project: String) -> String {
    // An absolute path stays as the project contains it. It bypasses `FilePath`, which would
    // normalize it.
    path.hasPrefix("/") ? path : FilePath(project).removingLastComponent().appending(path).string
  }

  /// Finds the movie that a path in a project refers to.
  ///
  /// Projects may come from other systems, and EDLs name tapes or clips instead of files. If the
  /// path does not exist, the project's directory is therefore searched: first for a file of the
  /// same name, then for the only movie whose name without extension is this name.
  static func found(_ path: String, in project: String) -> String {
    let plain = resolved(path, in: project)
    if SystemFiles.isEntry(plain) { return plain }
    // Paths from Windows contain backslashes.
    let name = path.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? path
    let beside = project.replacingLastPathComponent(with: name)
    if SystemFiles.isEntry(beside) { return beside }
    let found = SystemFiles.entries(in: project.parentDirectory).filter { other in
      other.fileStem == name
        && ["mov", "mp4", "m4v", "mkv", "avi", "mts", "mxf"].contains(other.fileExtension ?? "")
    }
    return found.count == 1 ? project.replacingLastPathComponent(with: found[0]) : plain
  }

  /// Returns a path in the form in which a project file stores it.
  ///
  /// If the path is in or below the project's directory, it becomes relative; otherwise absolute.
  static func path(_ path: String, seenFrom project: String) -> String {
    let directory = FilePath(project).removingLastComponent()
    if directory.isEmpty { return path }
    var relative = FilePath(path)
    return relative.removePrefix(directory) ? relative.string : Files.absolutePath(path)
  }
}
