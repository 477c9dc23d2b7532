// SPDX-License-Identifier: Apache-2.0

import Foundation

/// FFmpeg's programs, as an independent check of the files under test.
package enum FFmpeg {
  /// The failure of an FFmpeg program.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Whether `ffprobe` and `ffmpeg` are installed.
  package static let isInstalled = ["ffprobe", "ffmpeg"].allSatisfy(Program.isInstalled)

  /// Returns the values that `ffprobe` prints for the given entries, one line per stream or packet.
  ///
  /// With `counting`, `ffprobe` reads all packets, and `nb_read_packets` has a value.
  ///
  /// - Throws: `Failure` when `ffprobe` fails.
  package static func probe(
    _ path: String, _ entries: String, stream: String? = nil, counting: Bool = false
  ) async throws -> [String] {
    let selection =
      (stream.map { ["-select_streams", $0] } ?? []) + (counting ? ["-count_packets"] : [])
    let output = try await text(
      "ffprobe", selection + ["-show_entries", entries, "-of", "csv=p=0", path])
    return output.split(separator: "\n").map(String.init)
  }

  /// Converts a file with `ffmpeg` and returns the bytes of the result.
  ///
  /// - Throws: `Failure` when `ffmpeg` fails.
  package static func converted(
    _ path: String, _ options: [String], decoding inputOptions: [String] = []
  ) async throws -> [UInt8] {
    let scratch = try Scratch()
    let result = scratch.file("result")
    try await make(result, inputOptions + ["-i", path] + options)
    return try bytes(of: result)
  }

  /// Makes a file with `ffmpeg`; the path becomes the last argument.
  ///
  /// - Throws: `Failure` when `ffmpeg` fails.
  package static func make(_ path: String, _ arguments: [String]) async throws {
    _ = try await text("ffmpeg", arguments + ["-y", path])
  }

  /// Makes a clip of FFmpeg's moving test pattern with `ffmpeg`; all frames differ.
  ///
  /// - Throws: `Failure` when `ffmpeg` fails.
  package static func makeClip(
    _ path: String, frames: Int = 90, rate: String = "30", _ options: [String]
  ) async throws {
    try await make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=\(rate)", "-frames:v", "\(frames)"]
        + options)
  }

  /// Decodes the audio of a movie with `ffmpeg`, into one plane of floats per channel.
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
