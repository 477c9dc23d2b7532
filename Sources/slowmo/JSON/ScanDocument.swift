// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// The JSON document of `scan`.
struct ScanDocument: Encodable {
  let schema = schemaName("scan")
  let source: String
  /// The number of frames in the source; nil if it is not known in advance.
  let frameCount: Int64?
  /// The number of frames that were searched, some of them only around known objects.
  let examinedCount: Int64
  /// The number of frames that were searched as a whole.
  let searchedCount: Int64
  let objects: [ScannedObject]
  let overlays: [String]
  /// The faults of the file that did not prevent reading it.
  let notes: [String]
  let dryRun: Bool

  enum CodingKeys: CodingKey {
    case schema, source, frameCount, examinedCount, searchedCount, objects, overlays, notes, dryRun
  }
}

/// A found object: one line in the output of `scan`.
struct ScannedObject: Encodable {
  let schema = schemaName("scan.object")
  let type: String
  let text: String?
  /// The bytes of a code in hexadecimal digits.
  let bytes: String
  let frameIndex: Int64
  let pts: MediaTime
  let duration: MediaTime
  /// The left edge, upper edge, width and height, as fractions of the frame.
  let bounds: [Double]
  let corners: [[Double]]
  let faceId: Int64?
  let rollDegrees: Double?
  let yawDegrees: Double?

  enum CodingKeys: CodingKey {
    case schema, type, text, bytes, frameIndex, pts, duration, bounds, corners, faceId, rollDegrees
    case yawDegrees
  }

  /// Describes an object.
  ///
  /// The times of the object are counted from `start`.
  init(_ object: RecognizedObject, since start: MediaTime) {
    type = object.type
    text = object.text
    bytes = object.bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    frameIndex = object.frameIndex
    pts = MediaTime(exactly: object.time.seconds - start.seconds) ?? .zero
    duration = object.duration
    let rect = object.bounds
    bounds = [rect.x, rect.y, rect.width, rect.height].map(Self.rounded)
    corners = object.corners.map { [Self.rounded($0.x), Self.rounded($0.y)] }
    (faceId, rollDegrees, yawDegrees) = (object.faceID, object.rollDegrees, object.yawDegrees)
  }

  /// Rounds to a millionth of the frame's width or height, which is less than a hundredth of a
  /// pixel.
  private static func rounded(_ value: Double) -> Double { (value * 1e6).rounded() / 1e6 }

  /// Returns the line of JSON for the object.
  func line() throws -> String {
    String(decoding: try Output.encode(self, isPretty: false), as: UTF8.self)
  }
}

/// The value of an object in the timed metadata of a movie.
struct StoredObject: Codable {
  /// The keys of timed metadata.
  private static let (codeKey, faceKey) = ("com.overcrank.code", "com.overcrank.face")

  let type: String
  let text: String?
  let bounds: [Double]
  let corners: [[Double]]
  let faceId: Int64?
  let rollDegrees: Double?
  let yawDegrees: Double?

  enum CodingKeys: String, CodingKey {
    case type, text, bounds, corners
    case faceId = "face_id"
    case rollDegrees = "roll_degrees"
    case yawDegrees = "yaw_degrees"
  }

  init(_ object: RecognizedObject) {
    let scanned = ScannedObject(object, since: .zero)
    (type, text) = (object.type, object.text)
    (bounds, corners) = (scanned.bounds, scanned.corners)
    (faceId, rollDegrees, yawDegrees) = (object.faceID, object.rollDegrees, object.yawDegrees)
  }

  /// The key under which the object is stored.
  var key: String { faceId == nil ? Self.codeKey : Self.faceKey }

  /// Reads the objects of each frame from a movie's timed metadata.
  static func objects(in items: [TimedMetadataItem]) -> [Int64: [StoredObject]] {
    var objects: [Int64: [StoredObject]] = [:]
    for item in items where [codeKey, faceKey].contains(item.key) {
      guard case .text(let text) = item.value,
        let object = try? JSONDecoder().decode(Self.self, from: Data(text.utf8))
      else { continue }
      objects[item.frameIndex, default: []].append(object)
    }
    return objects
  }
}
