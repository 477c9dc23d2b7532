// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Images of faces with labels, which `Tests/Tools/FaceImages` extracts from a Debian package.
package struct FaceImages: Sendable {
  /// A face: a rectangle in pixels, and rotations that the points of the face show.
  package struct Box: Hashable, Sendable {
    package var left: Double
    package var top: Double
    package var width: Double
    package var height: Double
    /// The rotation of the face in degrees, clockwise.
    package var roll: Double
    /// The approximate rotation about the vertical axis in degrees, positive to the right of the
    /// image: the nose is that far from the middle of the eyes.
    package var yaw = 0.0
  }

  /// A gray image.
  package struct Image: Sendable {
    package let name: String
    package let path: String
    package var width: Int
    package var height: Int
    package var pixels: [UInt8]
    /// The labeled faces; empty for an image without labels.
    package var faces: [Box]
  }

  /// dlib's own detector in the file format of dlib, which Samples/install-faces.sh installs.
  package static let model = "/usr/share/libovercrank-faces1/frontal.svm"

  private let directory: String
  private let labels: [String: [Box]]

  /// Unpacks the images, if that was not done before.
  ///
  /// - Throws: The error output of the program.
  package init() async throws {
    let script = checkout + "/Tests/Tools/FaceImages/fetch.sh"
    let fetched = try await run("bash", [script])
    guard fetched.status == 0, let path = fetched.output.split(separator: "\n").last else {
      throw Failure(description: fetched.errors)
    }
    directory = String(path)
    var labels: [String: [Box]] = [:]
    for file in ["testing.xml", "training.xml"] {
      let text = try String(contentsOfFile: "\(directory)/\(file)", encoding: .utf8)
      var name = ""
      // Each XML element of an image, of a box and of a face's points is on a separate line.
      var points: [[Double]] = []
      for line in text.split(separator: "\n") {
        let values = Self.values(line)
        if let file = line.firstMatch(of: /<image file='([^']+)\.jpg'/) {
          name = String(file.output.1)
        }
        if let left = values["left"], let top = values["top"], let width = values["width"],
          let height = values["height"]
        {
          labels[name, default: []].append(
            Box(left: left, top: top, width: width, height: height, roll: 0))
          points = []
        }
        if let x = values["x"], let y = values["y"] { points.append([x, y]) }
        guard line.contains("</box>"), let last = labels[name]?.indices.last else { continue }
        guard points.count == 68 else { throw Failure(description: "\(file) has no faces") }
        // The points of the eye at the left of the image start at 36, and those of the other eye
        // follow.
        func mean(_ part: Range<Int>, _ axis: Int) -> Double {
          part.reduce(0) { $0 + points[$1][axis] } / Double(part.count)
        }
        let y = mean(42..<48, 1) - mean(36..<42, 1)
        let x = mean(42..<48, 0) - mean(36..<42, 0)
        labels[name]?[last].roll = atan2(y, x) * 180 / .pi
        // Point 30 is the tip of the nose. Its distance from the middle of the eyes along their line,
        // relative to the distance of the eyes, grows by 1 in 166 degrees.
        let noseX = points[30][0] - mean(36..<48, 0)
        let noseY = points[30][1] - mean(36..<48, 1)
        labels[name]?[last].yaw = 166 * (noseX * x + noseY * y) / (x * x + y * y)
      }
    }
    self.labels = labels
  }

  private static func values(_ element: Substring) -> [String: Double] {
    var values: [String: Double] = [:]
    for value in element.matches(of: /(\w+)='(-?\d+)'/) {
      values[String(value.output.1)] = Double(value.output.2)
    }
    return values
  }

  private struct Failure: Error, CustomStringConvertible { let description: String }

  /// The names of the images with labels.
  package var labeledNames: [String] { labels.keys.sorted() }

  /// Reads an image.
  package func image(_ name: String) throws -> Image {
    let path = "\(directory)/\(name).pgm"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    // The header is P5, the width, the height and 255, each followed by white space.
    let header = String(decoding: data.prefix(64), as: UTF8.self)
      .split(maxSplits: 4) { $0.isWhitespace }
    guard header.count > 3, header[0] == "P5", let width = Int(header[1]),
      let height = Int(header[2])
    else { throw Failure(description: "\(path) is not a PGM image") }
    return Image(
      name: name, path: path, width: width, height: height,
      pixels: Array(data.suffix(width * height)), faces: labels[name] ?? [])
  }

  /// Writes a movie in which a part of an image moves to the left from frame to frame.
  ///
  /// - Parameters:
  ///   - path: The movie, which ffmpeg writes as MJPEG.
  ///   - name: The image.
  ///   - count: The number of frames, 30 of them a second.
  ///   - step: The motion in pixels.
  /// - Throws: The error output of ffmpeg.
  package func writeMovie(_ path: String, of name: String, count: Int, step: Int) async throws {
    let image = try image(name)
    let width = (image.width - count * step) & ~1
    let arguments = [
      "-v", "error", "-y", "-loop", "1", "-framerate", "30", "-i", image.path, "-frames:v",
      "\(count)", "-vf", "crop=\(width):\(image.height & ~1):\(step)*n:0", "-c:v", "mjpeg",
      "-q:v",
      "2", "-pix_fmt", "yuvj420p", path,
    ]
    let made = try await run("ffmpeg", arguments)
    guard made.status == 0 else { throw Failure(description: made.errors) }
  }
}
