// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Another program, to judge our files by someone else's eyes.
package enum Tool {
  /// Why a program's answer is of no use.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Whether `ffprobe` and `ffmpeg` are installed.
  package static let hasFFmpeg = ["ffprobe", "ffmpeg"].allSatisfy { locate($0) != nil }

  /// What a program prints on standard output.
  ///
  /// - Throws: `Failure` when it is not installed or ends with another status than 0.
  package static func output(_ name: String, _ arguments: [String]) throws -> [UInt8] {
    guard let path = locate(name) else { throw Failure(description: "\(name) is not installed") }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(description: "\(name) ended with status \(process.terminationStatus)")
    }
    return [UInt8](data)
  }

  /// The lines that `ffprobe` prints for one kind of entries, values only.
  package static func probe(_ path: String, _ entries: String, stream: String? = nil) throws
    -> [String]
  {
    let selection = stream.map { ["-select_streams", $0] } ?? []
    let output = try output(
      "ffprobe",
      ["-v", "error"] + selection
        + ["-show_entries", entries, "-of", "csv=p=0:s=\\,", path])
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// The sound of a movie as `ffmpeg` decodes it: planes of floats.
  package static func sound(of path: String, channelCount: Int) throws -> [[Float]] {
    let bytes = try output(
      "ffmpeg", ["-v", "error", "-i", path, "-map", "0:a:0", "-f", "f32le", "-"])
    let values = bytes.withUnsafeBytes { buffer in
      (0..<buffer.count / 4).map {
        Float(bitPattern: buffer.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self))
      }
    }
    return (0..<channelCount).map { channel in
      stride(from: channel, to: values.count, by: channelCount).map { values[$0] }
    }
  }

  private static func locate(_ name: String) -> String? {
    let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return folders.split(separator: ":").map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
