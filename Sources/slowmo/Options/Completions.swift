// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// Completion of values that only this machine knows: devices, modes and controls.
///
/// The shell runs this program for each completion. It prints only candidates, so every failure
/// yields an empty list.
enum Completions {
  /// Completes the name of a device.
  static let device = CompletionKind.custom { _, _, prefix in shown(devices(prefix)) }

  /// Completes a mode of the device on the command line.
  static let mode = CompletionKind.custom { commandLine, index, _ in
    let formats = try? device(in: commandLine, completing: index)?.formats()
    return shown((formats ?? []).filter(\.isStorable).map(\.id))
  }

  /// Completes a control of the device on the command line, and the items of its menu.
  static let control = CompletionKind.custom { commandLine, index, prefix in
    guard let device = device(in: commandLine, completing: index),
      let controls = try? CameraControls(device: device).list()
    else { return [] }
    let settable = controls.filter { !$0.flags.contains("read-only") && $0.kind != .button }
    guard let name = unquoted(prefix).split(separator: "=").first, prefix.contains("=") else {
      return shown(settable.map { "\($0.name)=" })
    }
    guard let control = settable.first(where: { $0.name == name }) else { return [] }
    let values =
      control.kind == .boolean ? ["on", "off"] : control.menu.map { String($0.index) }
    return shown((values + ["default"]).map { "\(name)=\($0)" })
  }

  /// Completes the name of a microphone.
  static let microphone = CompletionKind.custom { _, _, _ in
    shown(
      CaptureDevice.discover().devices.filter { $0.media == [.audio] }.map(\.address) + ["none"])
  }

  /// Completes a video track of the movie on the command line.
  static let videoTrack = tracks(of: .video, [])
  /// Completes an audio track of the movie on the command line, or `none`.
  static let audioTrack = tracks(of: .audio, ["none"])

  private static func tracks(of mediaType: MediaType, _ others: [String]) -> CompletionKind {
    .custom { commandLine, index, _ in
      let count = movie(in: commandLine, completing: index)?.tracks(of: mediaType).count ?? 0
      return shown((0..<count).map { String($0 + 1) } + others)
    }
  }

  /// Completes the marks of the movie on the command line, also after `..` in a range.
  static let mark = marks(followedBy: "")
  /// Completes the marks in the points of a ramp, `T=S T=S …`.
  static let rampMark = marks(followedBy: "=")

  private static func marks(followedBy suffix: String) -> CompletionKind {
    .custom { commandLine, index, prefix in
      let prefix = unquoted(prefix)
      let start = prefix.lastIndex(of: "@") ?? prefix.startIndex
      guard prefix.isEmpty || prefix[start...].hasPrefix("@"),
        let asset = movie(in: commandLine, completing: index)
      else { return [] }
      // A name with a space would end a point of the ramp too early.
      let names = asset.marks.map(\.name).filter { !$0.contains(where: \.isWhitespace) }
      return shown(names.map { "\(prefix[..<start])@\($0)\(suffix)" })
    }
  }

  /// Returns the first movie that the other arguments name.
  private static func movie(in commandLine: [String], completing index: Int) -> Asset? {
    let arguments = commandLine.enumerated().filter { $0.offset != index }.map {
      unquoted($0.element)
    }
    return arguments.dropFirst(2).lazy.filter { ["mov", "mp4", "m4v"].contains($0.fileExtension) }
      .compactMap { try? Asset(path: $0) }.first
  }

  /// Returns the candidates for a device: only paths for an empty word, otherwise also the devices'
  /// other names.
  private static func devices(_ prefix: String) -> [String] {
    let prefix = unquoted(prefix)
    if prefix.hasPrefix("file:") {
      return files(String(prefix.dropFirst("file:".count))).map { "file:\($0)" }
    }
    if prefix.hasPrefix("synthetic:") {
      let formats = (try? CaptureDevice.named("synthetic").formats()) ?? []
      return formats.map { "synthetic:\($0.id.split(separator: "/").first ?? Substring($0.id))" }
    }
    let all = CaptureDevice.discover().devices
    let cameras = all.filter { $0.media.contains(.video) }
    let addresses = cameras.map(\.address) + ["file:"]
    guard !prefix.isEmpty else { return addresses }
    if prefix.hasPrefix("/"), !addresses.contains(where: { $0.hasPrefix(prefix) }) {
      return files(prefix)
    }
    return addresses + cameras.map(\.id)
      + all.indices.filter { all[$0].media.contains(.video) }.map { "cam\($0)" }
  }

  /// Returns the files and directories whose paths begin with a text; directories end in a slash.
  private static func files(_ prefix: String) -> [String] {
    let end = prefix.lastIndex(of: "/").map { prefix.index(after: $0) } ?? prefix.startIndex
    let directory = prefix[..<end]
    let name = prefix[end...]
    return SystemFiles.entries(in: directory.isEmpty ? "." : String(directory)).sorted()
      .filter { $0.hasPrefix(name) && (!$0.hasPrefix(".") || name.hasPrefix(".")) }
      .map { entry in
        let path = "\(directory)\(entry)"
        return SystemFiles.kind(of: path) == .directory ? "\(path)/" : path
      }
  }

  /// Returns the device that the other arguments name.
  ///
  /// The device normally follows the name of the command. Otherwise it is the first word that is
  /// neither an option nor directly after an option, because that word may be the option's value.
  private static func device(in commandLine: [String], completing index: Int) -> CaptureDevice? {
    let commandLine = commandLine.enumerated().filter { $0.offset != index }.map {
      unquoted($0.element)
    }
    .dropFirst()
    let isBench = commandLine.first == "bench"
    let arguments = Array(commandLine.dropFirst(isBench ? 2 : 1))
    for (offset, argument) in arguments.enumerated() where !argument.hasPrefix("-") {
      guard offset == 0 || !arguments[offset - 1].hasPrefix("-") else { continue }
      if let device = try? CaptureDevice.named(argument) { return device }
    }
    return isBench ? try? CaptureDevice.named("synthetic") : nil
  }

  /// Returns a word of a command line without quotes and backslashes.
  private static func unquoted(_ word: String) -> String {
    word.filter { !"'\"\\".contains($0) }
  }

  /// Returns the candidates without duplicates, in the form that the shell expects.
  ///
  /// Each candidate is a line that the shell prints, so candidates with control characters are left
  /// out. In zsh, a colon separates a candidate from its description, and a backslash escapes it.
  private static func shown(_ candidates: [String]) -> [String] {
    var seen = Set<String>()
    let candidates = candidates.filter { !$0.controlsTerminal && seen.insert($0).inserted }
    guard CompletionShell.requesting == .zsh else { return candidates }
    return candidates.map { $0.replacing("\\", with: "\\\\").replacing(":", with: "\\:") }
  }
}
