// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import OvercrankLinuxSystem
import Synchronization

/// Standard output for data, standard error for everything else.
enum Output {
  /// The first error of standard output, besides that of a reader that went away.
  private static let failure = Mutex<Int32?>(nil)

  /// Writes a line of data; false when its reader is gone or it cannot be written, which the end of
  /// the command tells.
  @discardableResult
  static func line(_ text: String) -> Bool {
    guard let reason = WholeFile.writeAll((text + "\n").systemBytes, to: STDOUT_FILENO) else {
      return true
    }
    // A reader that has seen enough is no error of ours.
    if reason != EPIPE { failure.withLock { $0 = $0 ?? reason } }
    return false
  }

  /// The reader of standard output is gone: nothing more is to be done, or told.
  struct ReaderIsGone: Error {}

  /// Writes a file's bytes to standard output.
  ///
  /// - Throws: `CommandError` where it cannot be written, `ReaderIsGone` where nobody reads it.
  static func data(_ bytes: [UInt8]) throws {
    guard let reason = WholeFile.writeAll(bytes, to: STDOUT_FILENO) else { return }
    throw reason == EPIPE ? ReaderIsGone() : error(reason)
  }

  /// What went wrong with standard output, if something did.
  static var problem: CommandError? { failure.withLock { $0 }.map(error) }

  private static func error(_ reason: Int32) -> CommandError {
    let isFull = [ENOSPC, EDQUOT, EFBIG].contains(reason)
    return CommandError(
      .inputOutput, code: isFull ? "disk_full" : "write_failed",
      "could not write to standard output: \(String(cString: strerror(reason)))",
      hint: isFull ? "free some space and try again" : "check where it is sent")
  }

  /// Opens what a caller has closed, by something that cannot be read or written.
  ///
  /// Else the first file to be opened takes the number of standard output, and gets what is printed.
  static func fillStandardDescriptors() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Tells people what they should know although nothing failed.
  static func warning(_ text: String) {
    guard !ProgressEvents.areOn else { return ProgressEvents.tell("warning", text) }
    notice("warning: \(text)")
  }

  /// Tells people something about a file; an event of the kind `warning`.
  static func note(_ text: String) {
    guard !ProgressEvents.areOn else { return ProgressEvents.tell("warning", text) }
    notice(text)
  }

  /// Tells what ended the verb; the event `end` says it, too.
  static func error(_ error: CommandError) {
    guard !ProgressEvents.areOn else { return ProgressEvents.fail(error) }
    notice("error: \(error.line)")
  }

  /// Writes a line of what is data elsewhere.
  static func plain(_ text: String) {
    guard !ProgressEvents.areOn else { return ProgressEvents.tell("note", text) }
    write((text + "\n").systemBytes, to: STDERR_FILENO)
  }

  /// Writes a line for people, whatever is told of progress.
  static func notice(_ text: String) {
    write("slowmo: \(text)\n".systemBytes, to: STDERR_FILENO)
  }

  /// Writes exactly one JSON document.
  static func document(_ document: some Encodable) throws {
    line(String(decoding: try encode(document, isPretty: true), as: UTF8.self))
  }

  /// A document's bytes, as ``DocumentEncoder`` writes it; keys are in order, so that two runs can be compared.
  ///
  /// Bytes of names that are no text are U+FFFD.
  static func encode(_ document: some Encodable, isPretty: Bool) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
    let data = try encoder.encode(DocumentEncoder.tree(of: document))
    return Data(String(decoding: data, as: UTF8.self).repaired.utf8)
  }

  /// Writes all bytes to standard error; where that fails, nobody can be told.
  static func write(_ bytes: [UInt8], to descriptor: Int32) {
    _ = WholeFile.writeAll(bytes, to: descriptor)
  }
}

/// What a document says when its verb failed.
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

/// The document of a verb that failed before it had anything else to say.
struct ErrorDocument: Encodable {
  let schema: String
  let error: ErrorDetails

  init(verb: String, _ error: CommandError) {
    schema = schemaName(verb)
    self.error = ErrorDetails(error)
  }
}

/// The name and number of a verb's schema.
func schemaName(_ verb: String) -> String { "slowmo.\(verb)/1" }
