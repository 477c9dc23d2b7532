// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The file names of several files of one recording, in order.
final class ClipNames: Sendable {
  private let template: NameTemplate
  private let overwrites: Bool
  /// Whether each file has a replay beside it, whose name must be free, too.
  private let hasReplays: Bool
  private let state = Mutex<(number: Int, coming: String?)>((0, nil))

  /// Parses a name template.
  ///
  /// - Throws: `CommandError` as ``template(_:for:)``.
  init(_ output: String, overwrites: Bool, hasReplays: Bool = false) throws {
    template = try Self.template(output)
    (self.overwrites, self.hasReplays) = (overwrites, hasReplays)
  }

  /// The name of the replay of a clip: `swing.replay.mp4` for `swing.mov`.
  static func replay(of clip: String) -> String {
    let suffix = clip.fileExtension.map { $0.count + 1 } ?? 0
    return "\(clip.dropLast(suffix)).replay.mp4"
  }

  /// Parses the name template of several files.
  ///
  /// - Parameters:
  ///   - output: The template.
  ///   - option: The option that makes several files, for the error message.
  /// - Returns: The template.
  /// - Throws: `CommandError` if all files would have the same name.
  static func template(_ output: String, for option: String = "--repeat") throws -> NameTemplate {
    let template = try NameTemplate(output, fields: ["n", "date", "time"])
    guard template.holds("n") else {
      let files = option == "--repeat" ? "clips" : "files"
      throw CommandError.usage(
        "with \(option), all \(files) would have the name \(output)",
        hint: "add the \(files.dropLast())'s number: swing_{n:03}.mov")
    }
    return template
  }

  /// Returns the name of the next file, without marking the name as used.
  func coming() -> String {
    state.withLock { state in
      if let coming = state.coming { return coming }
      state.number += 1
      // The name may belong to a file of an earlier capture or of another program. Such a file is
      // not replaced, so the number advances.
      while !overwrites, isTaken(name(state.number)) { state.number += 1 }
      let name = name(state.number)
      state.coming = name
      return name
    }
  }

  /// Returns the name of the next file, and marks the name as used.
  func next() -> String {
    let name = coming()
    state.withLock { $0.coming = nil }
    return name
  }

  private func isTaken(_ name: String) -> Bool {
    SystemFiles.isEntry(name) || hasReplays && SystemFiles.isEntry(Self.replay(of: name))
  }

  private func name(_ number: Int) -> String {
    var now = Glibc.time(nil)
    var local = tm()
    localtime_r(&now, &local)
    func digits(_ value: Int32, _ width: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(0, width - text.count)) + text
    }
    return template.name([
      "n": .number(Int64(number)),
      "date": .text(
        digits(local.tm_year + 1900, 4) + digits(local.tm_mon + 1, 2) + digits(local.tm_mday, 2)),
      "time": .text(
        digits(local.tm_hour, 2) + digits(local.tm_min, 2) + digits(local.tm_sec, 2)),
    ])
  }
}
