// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Pictures of faces with labels, which `Tests/Tools/FacePictures` takes out of a Debian package.
package struct FacePictures: Sendable {
  /// A rectangle in pixels.
  package struct Box: Hashable, Sendable {
    package let left: Double
    package let top: Double
    package let width: Double
    package let height: Double
  }

  /// A gray picture.
  package struct Picture: Sendable {
    package let name: String
    package let path: String
    package let width: Int
    package let height: Int
    package let pixels: [UInt8]
    /// The faces, as those who took the picture labeled them; none for a picture without labels.
    package let faces: [Box]
  }

  private let directory: String
  private let labels: [String: [Box]]

  /// Unpacks the pictures, unless they are.
  ///
  /// - Throws: What the program says, if it fails.
  package init() async throws {
    let script = FileManager.default.currentDirectoryPath + "/Tests/Tools/FacePictures/fetch.sh"
    let fetched = try await run("bash", [script])
    guard fetched.status == 0, let path = fetched.output.split(separator: "\n").last else {
      throw Failure(description: fetched.errors)
    }
    directory = String(path)
    var labels: [String: [Box]] = [:]
    for file in ["testing.xml", "training.xml"] {
      let text = try String(contentsOfFile: "\(directory)/\(file)", encoding: .utf8)
      var name = ""
      for match in text.matches(of: /<image file='([^']+)\.jpg'|<box ([^\/]+)\/>/) {
        if let file = match.output.1 { name = String(file) }
        guard let box = match.output.2 else { continue }
        var values: [String: Double] = [:]
        for value in box.matches(of: /(\w+)='(-?\d+)'/) {
          values[String(value.output.1)] = Double(value.output.2)
        }
        guard let left = values["left"], let top = values["top"], let width = values["width"],
          let height = values["height"]
        else { throw Failure(description: "\(file) has a box of \(box)") }
        labels[name, default: []].append(
          Box(left: left, top: top, width: width, height: height))
      }
    }
    self.labels = labels
  }

  private struct Failure: Error, CustomStringConvertible { let description: String }

  /// The names of the pictures with labels.
  package var labeledNames: [String] { labels.keys.sorted() }

  /// Reads a picture.
  package func picture(_ name: String) throws -> Picture {
    let path = "\(directory)/\(name).pgm"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    // P5, the width, the height and 255, each followed by white space.
    let header = String(decoding: data.prefix(64), as: UTF8.self)
      .split(maxSplits: 4) { $0.isWhitespace }
    guard header.count > 3, header[0] == "P5", let width = Int(header[1]),
      let height = Int(header[2])
    else { throw Failure(description: "\(path) is no PGM image") }
    return Picture(
      name: name, path: path, width: width, height: height,
      pixels: Array(data.suffix(width * height)), faces: labels[name] ?? [])
  }

  /// Writes a movie in which a part of a picture moves to the left from frame to frame.
  ///
  /// - Parameters:
  ///   - path: The movie, which ffmpeg writes as MJPEG.
  ///   - name: The picture.
  ///   - count: The number of frames, 30 of them a second.
  ///   - step: The motion in pixels.
  /// - Throws: What ffmpeg says, if it fails.
  package func writeMovie(_ path: String, of name: String, count: Int, step: Int) async throws {
    let picture = try picture(name)
    let width = (picture.width - count * step) & ~1
    let arguments = [
      "-v", "error", "-y", "-loop", "1", "-framerate", "30", "-i", picture.path, "-frames:v",
      "\(count)", "-vf", "crop=\(width):\(picture.height & ~1):\(step)*n:0", "-c:v", "mjpeg",
      "-q:v",
      "2", "-pix_fmt", "yuvj420p", path,
    ]
    let made = try await run("ffmpeg", arguments)
    guard made.status == 0 else { throw Failure(description: made.errors) }
  }
}
