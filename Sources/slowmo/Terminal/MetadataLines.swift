// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Glibc
import Overcrank
import Synchronization

/// Metadata values for frames, read as JSON lines from a file descriptor.
///
/// A line is `{"key": "com.example.speed", "value": 41.5, "frame": 120}`. Without `frame`, a value
/// belongs to the frame that is recorded when the line arrives.
struct MetadataLines {
  /// Warnings about invalid lines, for the thread that reports progress.
  final class Warnings: Sendable {
    private let messages = Mutex<[String]>([])
    private let isEmpty = Atomic<Bool>(true)

    fileprivate func append(_ message: String) {
      messages.withLock { $0.append(message) }
      isEmpty.store(false, ordering: .releasing)
    }

    /// Removes and returns the warnings.
    func take() -> [String] {
      guard !isEmpty.exchange(true, ordering: .acquiringAndReleasing) else { return [] }
      return messages.withLock { messages in
        defer { messages = [] }
        return messages
      }
    }
  }

  /// A line of the input.
  private struct Line: Decodable {
    let key: String
    let value: MetadataValue
    let frame: Int64?
    /// The frame index under the key that `info --timed-metadata` prints; accepted in place of
    /// `frame`.
    let frameIndex: Int64?

    enum CodingKeys: String, CodingKey {
      case key, value, frame
      case frameIndex = "frame_index"
    }
  }

  /// The length of the longest accepted line, in bytes.
  private static let longestLine = 1 << 17
  /// The greatest number of invalid lines that are reported.
  private static let reportedCount = 10

  private let movie: MovieFileOutput
  private let warnings: Warnings
  private var (lineCount, badCount) = (0, 0)
  private var rest: [UInt8] = []
  private var isTooLong = false

  private init(_ movie: MovieFileOutput, _ warnings: Warnings) {
    (self.movie, self.warnings) = (movie, warnings)
  }

  /// Starts reading metadata values.
  ///
  /// A regular file is read at once. A pipe is read on a private dispatch queue, until its end.
  ///
  /// - Parameters:
  ///   - descriptor: The open file descriptor.
  ///   - movie: The output that stores the values.
  /// - Returns: The warnings about invalid lines, which are added until the end of the input.
  /// - Throws: `CommandError` if the descriptor is not open for reading.
  static func read(
    _ descriptor: Int32, into movie: MovieFileOutput
  ) throws -> Warnings {
    var status = stat()
    let mode = fcntl(descriptor, F_GETFL)
    guard mode >= 0, mode & O_ACCMODE != O_WRONLY, fstat(descriptor, &status) == 0 else {
      throw CommandError.usage(
        "file descriptor \(descriptor) is not open for reading",
        hint: "open it in the shell: \(descriptor)<values.json")
    }
    let warnings = Warnings()
    let lines = MetadataLines(movie, warnings)
    if status.st_mode & S_IFMT == S_IFREG {
      lines.readAll(descriptor)
    } else {
      DispatchQueue(label: "metadata lines").async { lines.readAll(descriptor) }
    }
    return warnings
  }

  private consuming func readAll(_ descriptor: Int32) {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &bytes, bytes.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      for byte in bytes[..<count] {
        if byte == UInt8(ascii: "\n") {
          endLine()
        } else if rest.count < Self.longestLine {
          rest.append(byte)
        } else {
          isTooLong = true
        }
      }
    }
    if !rest.isEmpty { endLine() }
    if badCount > Self.reportedCount {
      warnings.append("\(badCount) lines of metadata were not valid")
    }
  }

  private mutating func endLine() {
    lineCount += 1
    defer { (rest, isTooLong) = ([], false) }
    let isBlank = rest.allSatisfy { [0x20, 0x09, 0x0D].contains($0) }
    if isBlank, !isTooLong { return }
    do {
      guard !isTooLong else { throw CommandError.usage("the line is too long", hint: "") }
      let line: Line
      do { line = try JSONDecoder().decode(Line.self, from: Data(rest)) } catch {
        throw CommandError.usage("it has no key and value", hint: "")
      }
      let isStored = try movie.append(
        line.value, forKey: line.key, atFrame: line.frame ?? line.frameIndex)
      guard isStored else { throw CommandError.usage("too many values are waiting", hint: "") }
    } catch {
      badCount += 1
      guard badCount <= Self.reportedCount else { return }
      warnings.append(
        "ignored line \(lineCount) of the metadata: \(CommandError(error).message)")
    }
  }
}
