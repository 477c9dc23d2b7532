// SPDX-License-Identifier: Apache-2.0

import Foundation

/// FFmpeg's programs, to judge our files by someone else's eyes.
package enum FFmpeg {
  /// Why a program's answer is of no use.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Whether both programs are installed.
  package static let isInstalled = ["ffprobe", "ffmpeg"].allSatisfy { name in
    let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return folders.split(separator: ":")
      .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
  }

  /// The lines that `ffprobe` prints for some entries, values only.
  ///
  /// - Throws: `Failure` when it does not like the file.
  package static func probe(
    _ path: String, _ entries: String, stream: String? = nil
  ) async throws -> [String] {
    let selection = stream.map { ["-select_streams", $0] } ?? []
    let output = try await text(
      "ffprobe", selection + ["-show_entries", entries, "-of", "csv=p=0", path])
    return output.split(separator: "\n").map(String.init)
  }

  /// What `ffmpeg` makes of a file with some options, as the bytes that it writes.
  ///
  /// - Throws: `Failure` when it does not like the file.
  package static func converted(
    _ path: String, _ options: [String], decoding inputOptions: [String] = []
  ) async throws -> [UInt8] {
    let scratch = try Scratch()
    let result = scratch.file("result")
    try await make(result, inputOptions + ["-i", path] + options)
    return try bytes(of: result)
  }

  /// Makes a file with `ffmpeg`; its path is the last argument.
  ///
  /// - Throws: `Failure` when it cannot be made.
  package static func make(_ path: String, _ arguments: [String]) async throws {
    _ = try await text("ffmpeg", arguments + ["-y", path])
  }

  /// Makes a clip of a moving test image with `ffmpeg`: a frame number for each of them differs.
  ///
  /// - Throws: `Failure` when it cannot be made.
  package static func makeClip(
    _ path: String, frames: Int = 90, rate: String = "30", _ options: [String]
  ) async throws {
    try await make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=\(rate)", "-frames:v", "\(frames)"]
        + options)
  }

  /// The sound of a movie as `ffmpeg` decodes it: planes of floats.
  package static func audio(of path: String, channelCount: Int) async throws -> [[Float]] {
    let bytes = try await converted(path, ["-map", "0:a:0", "-f", "f32le"])
    let values = bytes.withUnsafeBytes { buffer in
      (0..<buffer.count / 4).map {
        Float(bitPattern: buffer.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self))
      }
    }
    return (0..<channelCount).map { channel in
      stride(from: channel, to: values.count, by: channelCount).map { values[$0] }
    }
  }

  private static func text(_ name: String, _ arguments: [String]) async throws -> String {
    let finished = try await run(name, ["-v", "error"] + arguments)
    guard finished.status == 0 else {
      throw Failure(description: "\(name) ended with \(finished.status): \(finished.errors)")
    }
    return finished.output
  }
}
