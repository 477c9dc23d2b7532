// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization
import SystemPackage

/// Writes the results to standard output, and all other text to standard error.
///
/// A write to standard output waits for the reader until a signal arrives (``ReaderWait``). A write
/// to standard error never waits.
enum Output {
  /// Standard error.
  ///
  /// A background thread writes to it, because a slow reader must not delay a recording.
  private static let standardError = BackgroundWriter(.standardError)

  /// The errno of the first failed write to standard output.
  ///
  /// A pipe closed by its reader does not count.
  private static let failure = Mutex<Errno?>(nil)

  /// Writes a line for people to standard output, without characters that control a terminal.
  ///
  /// Returns true if the line was written, and false if the reader closed the pipe or the write
  /// failed. ``problem`` then contains the error of a failed write.
  @discardableResult
  static func line(_ text: String) -> Bool { write(text.terminalBytes + newline) }

  /// Writes trusted text, such as help or a document, to standard output without filtering it.
  ///
  /// Returns true or false as ``line(_:)`` does.
  @discardableResult
  static func verbatim(_ text: String) -> Bool { write(text.systemBytes + newline) }

  private static let newline = [UInt8(ascii: "\n")]

  private static func write(_ bytes: [UInt8]) -> Bool {
    let failed = bytes.withUnsafeBytes { fully($0, to: .standardOutput) }
    guard let reason = failed else { return true }
    // A reader such as head(1) stops early on purpose, so a closed pipe is not an error.
    if reason != .brokenPipe { failure.withLock { $0 = $0 ?? reason } }
    return false
  }

  /// Thrown if the reader of standard output has closed its end.
  ///
  /// The command then stops without an error.
  struct ReaderIsGone: Error {}

  /// Writes bytes to standard output.
  ///
  /// - Throws: `CommandError` if the write fails, `ReaderIsGone` if the reader closed the pipe.
  static func data(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try data($0) } }

  /// Writes bytes to standard output, as ``data(_:)-([UInt8])`` does.
  static func data(_ bytes: UnsafeRawBufferPointer) throws {
    try check(fully(bytes, to: .standardOutput))
  }

  /// Writes bytes completely to a descriptor, after everything that was written to standard error.
  ///
  /// - Returns: The error, or nil after success; `.interrupted` if the reader stopped reading after
  ///   a signal.
  static func fully(_ bytes: UnsafeRawBufferPointer, to descriptor: FileDescriptor) -> Errno? {
    standardError.drain()
    return ReaderWait.run { givesUp in descriptor.writeFully(bytes, givesUp: givesUp) }
  }

  /// Writes a file to standard output: unchanged, or without control characters if standard output
  /// is a terminal.
  ///
  /// Programs compare names and codes byte by byte, so a pipe or a file gets unchanged bytes. A
  /// terminal would obey control characters in them.
  static func file(_ bytes: [UInt8]) throws {
    try data(isatty(STDOUT_FILENO) == 1 ? terminalText(bytes) : bytes)
  }

  /// Returns the bytes of a text without characters that control a terminal, except line breaks.
  static func terminalText(_ bytes: [UInt8]) -> [UInt8] {
    Array(
      bytes.split(separator: newline[0], omittingEmptySubsequences: false)
        .map { String(systemBytes: $0).terminalBytes }.joined(separator: newline))
  }

  /// Throws for a failed write to standard output, as ``data(_:)-([UInt8])`` does.
  static func check(_ reason: Errno?) throws {
    guard let reason else { return }
    throw reason == .brokenPipe ? ReaderIsGone() : error(reason)
  }

  /// The error of a failed write to standard output, if any.
  static var problem: CommandError? { failure.withLock { $0 }.map(error) }

  private static func error(_ reason: Errno) -> CommandError {
    error(reason, "standard output")
  }

  /// The error of a failed write to a descriptor that another program reads.
  static func error(_ reason: Errno, _ name: String) -> CommandError {
    guard reason != .interrupted else {
      return CommandError(
        Interrupt.status, code: "cancelled", "interrupted while \(name) was not read",
        hint: "read it, or redirect it to a file")
    }
    let isFull = [ENOSPC, EDQUOT, EFBIG].contains(reason.rawValue)
    return CommandError(
      .inputOutput, code: isFull ? "disk_full" : "write_failed",
      "could not write to \(name): \(String(cString: strerror(reason.rawValue)))",
      hint: isFull ? "free some space and try again" : "check the target of the redirection")
  }

  /// Opens /dev/null for each standard descriptor that the caller closed.
  ///
  /// Otherwise a file that the program opens could become descriptor 1, and printed text would be
  /// written into it. /dev/null is opened for writing as standard input and for reading as standard
  /// output, so that any use fails.
  static func fillStandardDescriptors() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Prints a warning.
  ///
  /// With `--progress json`, it is a `warning` event.
  static func warning(_ text: String) {
    guard !ProgressEvents.areOn else { return ProgressEvents.emit("warning", text) }
    notice("warning: \(text)")
  }

  /// Prints a note about a file.
  ///
  /// With `--progress json`, it is a `warning` event.
  static func note(_ text: String) {
    guard !ProgressEvents.areOn else { return ProgressEvents.emit("warning", text) }
    notice(text)
  }

  /// Prints the error that ended the command.
  ///
  /// With `--progress json`, it becomes part of the `end` event.
  static func error(_ error: CommandError) {
    guard !ProgressEvents.areOn else { return ProgressEvents.fail(error) }
    notice("error: \(error.line)")
  }

  /// Prints a line of text without the command's name in front.
  ///
  /// With `--progress json`, it is a `note` event.
  static func plain(_ text: String) {
    guard !ProgressEvents.areOn else { return ProgressEvents.emit("note", text) }
    standardError.write(text.terminalBytes + newline)
  }

  /// Prints a line of text for people, in every progress style.
  ///
  /// If `isProgress` is true and the reader is slow, the next progress line replaces this one.
  static func notice(_ text: String, isProgress: Bool = false) {
    standardError.write("slowmo: \(text)".terminalBytes + newline, isProgress: isProgress)
  }

  /// Replaces the last line of a terminal on standard error; an empty text removes the line.
  static func status(_ text: String) {
    standardError.write("\r\u{1B}[K\(text)".systemBytes, isProgress: !text.isEmpty)
  }

  /// Prints an event of `--progress json`.
  static func event(_ json: Data, isProgress: Bool) {
    standardError.write([UInt8](json) + newline, isProgress: isProgress)
  }

  /// Makes each write to standard error block until the written text is read.
  ///
  /// Used if no background thread can start.
  static func writeErrorsDirectly() { standardError.writeDirectly() }

  /// Reports the lines that were dropped because standard error was not read.
  static func noteDroppedLines() {
    let count = standardError.droppedCount
    guard count > 0 else { return }
    warning("\(count) lines were dropped because standard error was not read")
  }

  /// Waits until standard error has been read, but not for a reader that reads nothing.
  static func drainErrors() { standardError.drain() }

  /// Prints exactly one JSON document on standard output.
  static func document(_ document: some Encodable) throws {
    let data = try encode(document, isPretty: true)
    CommandEnd.begin()
    verbatim(String(decoding: data, as: UTF8.self))
  }

  /// Prints a document as JSON, or its lines for people.
  static func print(_ document: some Encodable & TextDocument, asJSON: Bool) throws {
    if asJSON { return try self.document(document) }
    for line in document.lines { self.line(line) }
  }

  /// Encodes a document with ``DocumentEncoder`` and sorts its keys, so that runs compare easily.
  ///
  /// Bytes of file names that are not valid UTF-8 become U+FFFD. Codes and tags may contain any
  /// characters. A terminal would obey control characters, so those that JSON allows are escaped
  /// too.
  static func encode(_ document: some Encodable, isPretty: Bool) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
    let data = try encoder.encode(DocumentEncoder.tree(of: document))
    var text = ""
    for scalar in String(decoding: data, as: UTF8.self).repaired.unicodeScalars {
      if (0x7F...0x9F).contains(scalar.value) {
        text += "\\u00" + String(scalar.value, radix: 16)
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return Data(text.utf8)
  }
}

/// The error object of a JSON document.
struct ErrorDetails: Encodable, Sendable {
  let code: String
  let message: String
  let hint: String

  init(_ error: CommandError) {
    code = error.code
    message = error.message
    hint = error.hint
  }
}

/// The JSON document of a command that failed before it had results.
struct ErrorDocument: Encodable {
  let schema: String
  let error: ErrorDetails

  init(verb: String, _ error: CommandError) {
    schema = schemaName(verb)
    self.error = ErrorDetails(error)
  }
}

/// Returns the schema identifier for the JSON document of a command.
func schemaName(_ verb: String) -> String { "slowmo.\(verb)/1" }

extension Output {
  /// Prints notes about the faults of a movie.
  static func notes(of asset: Asset) {
    notes(of: [asset])
  }

  /// Prints the notes about faults in movies, and returns them, each after the path of its movie.
  @discardableResult
  static func notes(of assets: [Asset]) -> [String] {
    let texts = assets.flatMap { asset in asset.notes.map { "\(asset.path): \($0)" } }
    for text in texts { note(text) }
    return texts
  }

  /// Notes that images of a movie with a high dynamic range look flat in many programs.
  static func noteMissingToneMapping(of asset: Asset) {
    guard asset.videoTrack?.containsHDRVideo == true else { return }
    note(
      "\(asset.path) has a high dynamic range (HDR), and its images are not tone-mapped, so they look flat "
        + "in programs that expect a standard range")
  }

  /// Notes why text is drawn in dots, or which characters of the texts no installed font has.
  static func noteMissingFonts(for texts: [String] = []) {
    if let failure = BurnInFont.standardFailure {
      let isFontless = failure.code == .burnInRefused
      note(
        isFontless
          ? "no font is installed, so text is drawn in dots; install fonts-dejavu-core"
          : "\(failure.message), so text is drawn in dots")
    }
    let missing = texts.map { BurnInFont.standard.missingCharacters(of: $0) }.joined()
    guard !missing.isEmpty else { return }
    note(
      "no installed font has the characters \(missing.prefix(40)), so they are drawn as "
        + "\(BurnInFont.standard == .dots ? "question marks" : "boxes"); install a font that has them, "
        + "such as fonts-noto-cjk")
  }

  /// Warns if some of the frames that a command measures were synthesized.
  ///
  /// Returns the number of synthesized frames.
  @discardableResult
  static func warnOfSynthesizedFrames(_ indices: some Sequence<Int>, of asset: Asset) -> Int {
    guard let synthesized = asset.synthesizedFrames else { return 0 }
    let count = indices.count { synthesized.confidenceTenths(ofFrame: $0) != nil }
    if count > 0 {
      warning(
        "\(asset.path): \(count) of the measured frames are synthesized; measure the movie that "
          + "they were made from")
    }
    return count
  }
}
