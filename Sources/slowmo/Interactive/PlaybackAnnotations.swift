// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// The shapes that were drawn during playback, and the file to which they are written.
///
/// Only the main thread uses it.
final class PlaybackAnnotations {
  private let path: String?
  private var file: AnnotationFile
  /// The scale of distances; nil if it is unknown.
  private let scale: LengthScale?

  /// Reads the file, if it exists.
  init(_ path: String?, of movie: String, scale: LengthScale?) throws {
    (self.path, self.scale) = (path, scale)
    file = AnnotationFile(file: movie, annotations: [])
    if let path, SystemFiles.isEntry(path) {
      file.annotations = try AnnotationFile.read(path).annotations
    }
  }

  /// True if no shape was read or drawn, so that no frame has shapes.
  var isEmpty: Bool { file.annotations.isEmpty }

  /// Performs the action of a key.
  ///
  /// - Returns: A message about the change; nil for a key that does not concern the shapes.
  func press(_ key: PlayerKey, isMeasuring: Bool) throws -> String? {
    switch key {
    case .undo where isMeasuring && !file.annotations.isEmpty:
      file.annotations.removeLast()
      return "removed the last measure"
    case .writeAnnotations:
      guard let path else { return "nothing written: start play with --annotations FILE" }
      try Files.write(path, Output.encode(file, isPretty: true), overwrites: true)
      return "written: \(path)"
    default: return nil
    }
  }

  /// Adds a shape to a frame; an angle replaces the distance from which it was drawn.
  func add(_ shape: ViewShape, frame: Int, captureTime: MediaTime?) {
    if shape.kind == .angle, let last = file.annotations.last, last.frameIndex == frame,
      last.points == Array(shape.points.prefix(2))
    {
      file.annotations.removeLast()
    }
    file.annotations.append(
      AnnotationFile.Annotation(
        kind: shape.kind, frameIndex: frame, captureNs: captureTime.map { nanoseconds($0.seconds) },
        points: shape.points))
  }

  /// Returns the shapes of a frame with their measures, and then a shape that is being drawn.
  func shapes(frame: Int, draft: ViewShape?) -> [ViewShape] {
    let drawn = file.annotations.filter { $0.frameIndex == frame }
      .map { ViewShape($0.kind, $0.points) }
    return (drawn + (draft.map { [$0] } ?? [])).map { shape in
      var shape = shape
      shape.label = label(of: shape)
      return shape
    }
  }

  private func label(of shape: ViewShape) -> String {
    let (points, measuring) = (shape.points, ImageMeasurement())
    switch shape.kind {
    case .point: return "\(decimal(points[0].x, 1)),\(decimal(points[0].y, 1))"
    case .distance:
      let pixels = measuring.distance(from: points[0], to: points[1])
      let length = scale.map { " · \(decimal($0.meters(of: pixels).value, 3)) m" } ?? ""
      return "\(decimal(pixels.value, 1)) px\(length)"
    case .angle:
      let angle = measuring.angle(at: points[1], between: points[0], and: points[2]).value
      return angle.isFinite ? "\(decimal(angle, 1))°" : ""
    case .box:
      let (width, height) = (points[1].x - points[0].x, points[1].y - points[0].y)
      return "\(decimal(width, 1))x\(decimal(height, 1)) px"
    }
  }
}

/// The file of `--annotations`: points, distances, angles and boxes in the frames of a movie.
struct AnnotationFile: Codable {
  struct Annotation: Codable {
    let kind: ViewShape.Kind
    let frameIndex: Int
    let captureNs: Int64?
    /// The points in pixels of the displayed frame, from the upper left corner.
    let points: [Point]
  }

  private(set) var schema = schemaName("annotations")
  let file: String
  var annotations: [Annotation]

  init(file: String, annotations: [Annotation]) {
    (self.file, self.annotations) = (file, annotations)
  }

  /// Reads a file that the key of `play` has written.
  ///
  /// - Throws: `CommandError` with the status `.badData` for another content.
  static func read(_ path: String) throws -> AnnotationFile {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let data = Data(try Files.readText(path).utf8)
    guard let file = try? decoder.decode(AnnotationFile.self, from: data),
      file.schema == schemaName("annotations"),
      file.annotations.allSatisfy({ annotation in
        annotation.frameIndex >= 0 && annotation.points.count == annotation.kind.pointCount
          && annotation.points.allSatisfy { $0.x.magnitude <= 1e6 && $0.y.magnitude <= 1e6 }
      })
    else {
      throw CommandError(
        .badData, code: "invalid_data",
        "\(path) has no annotations of \(schemaName("annotations"))",
        hint: "choose a file that the key e of slowmo play has written")
    }
    return file
  }
}
