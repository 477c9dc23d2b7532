// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Frames with machine-readable codes, which `Tests/Tools/CodeFrames` makes with zint.
package struct CodeFrames: Sendable {
  /// A frame and the codes in it.
  package struct Frame: Decodable, Sendable {
    package struct Code: Decodable, Sendable {
      package let type: String
      package let text: String
      /// The corners of the symbol in pixels, from the upper left one clockwise.
      package let corners: [[Double]]
    }
    package let file: String
    package let condition: String
    package let codes: [Code]
  }

  package static let width = 1_280
  package static let height = 720
  package let frames: [Frame]
  private let directory: Scratch

  /// Makes frames.
  ///
  /// - Parameter arguments: The arguments after the directory: `--sample N`, `--only TYPE TEXT`, or
  ///   `--clip N LENGTH`.
  /// - Throws: The error output of the program.
  package init(_ arguments: String...) async throws {
    directory = try Scratch()
    let script =
      checkout + "/Tests/Tools/CodeFrames/code-frames.py"
    // Only Debian's Python has Debian's numpy, and another Python may come first in PATH.
    let made = try await run("/usr/bin/python3", [script, directory.path] + arguments)
    guard made.status == 0 else { throw Failure(description: made.errors) }
    frames = try JSONDecoder().decode(
      [Frame].self, from: Data(contentsOf: URL(fileURLWithPath: directory.file("labels.json"))))
  }

  private struct Failure: Error, CustomStringConvertible { let description: String }

  /// The path of a frame as a PGM image.
  package func path(_ frame: Frame) -> String { directory.file(frame.file) }

  /// The gray pixels of a frame.
  package func pixels(_ frame: Frame) throws -> [UInt8] {
    Array(
      try Data(contentsOf: URL(fileURLWithPath: path(frame))).suffix(Self.width * Self.height))
  }

  /// Writes the frames as a movie without loss, 240 of them a second.
  ///
  /// - Parameters:
  ///   - path: The movie.
  ///   - step: The distance of the frames that are written: with 5, each fifth one, from the first.
  /// - Throws: The error output of ffmpeg.
  package func writeClip(_ path: String, every step: Int = 1) async throws {
    let made = try await run(
      "ffmpeg",
      ["-v", "error", "-y", "-framerate", "240", "-i", directory.file("%05d.pgm")]
        + ["-vf", "select=not(mod(n\\,\(step))),settb=1/240,setpts=N", "-fps_mode", "passthrough"]
        + ["-c:v", "ffv1", "-pix_fmt", "gray", path])
    guard made.status == 0 else { throw Failure(description: made.errors) }
  }

  /// The texts that zxing-cpp's Python module reads in each frame; nil if it is not installed.
  ///
  /// `ZXING_PYTHON` names a Python that has it.
  ///
  /// - Throws: The error output of the program.
  package func textsOfPeer() async throws -> [[String]]? {
    guard let python = ProcessInfo.processInfo.environment["ZXING_PYTHON"] else {
      print("without ZXING_PYTHON, codes are compared with the library's own read of each frame")
      return nil
    }
    struct Texts: Decodable { let texts: [[String]] }
    let script = checkout + "/Tests/Tools/CodeFrames/read-frames.py"
    let read = try await run(python, [script, directory.path])
    guard read.status == 0 else { throw Failure(description: read.errors) }
    return try JSONDecoder().decode(Texts.self, from: Data(read.output.utf8)).texts
  }

  /// Writes a movie in which a part of the first frame moves to the left.
  ///
  /// - Parameters:
  ///   - path: The movie, which ffmpeg writes as MJPEG.
  ///   - count: The number of frames, 240 of them a second.
  ///   - step: The motion from frame to frame, in pixels.
  ///   - width: The width of the part, which is in the center of the frame.
  ///   - height: The height of the part.
  /// - Throws: The error output of ffmpeg.
  package func writeMovie(
    _ path: String, count: Int, step: Int = 2, width: Int = 640, height: Int = 360
  ) async throws {
    let (left, top) = ((Self.width - width) / 2, (Self.height - height) / 2)
    let arguments = [
      "-v", "error", "-y", "-loop", "1", "-framerate", "240", "-i", self.path(frames[0]),
      "-frames:v", "\(count)", "-vf", "crop=\(width):\(height):\(left)+\(step)*n:\(top)",
      "-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj420p", path,
    ]
    let made = try await run("ffmpeg", arguments)
    guard made.status == 0 else { throw Failure(description: made.errors) }
  }
}
