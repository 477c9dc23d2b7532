// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A reader of codes and one of faces, each nil if its types are not searched for.
struct ObjectReaders: Sendable {
  /// The types that are found.
  let types: [MetadataObjectType]
  let codes: CodeReader?
  let faces: FaceReader?

  /// The types that can be found.
  static let available = MetadataObjectType.codes + [.face]

  /// Creates the readers of some types.
  ///
  /// - Parameters:
  ///   - types: The types.
  ///   - faceModel: The detector of faces, or nil for dlib's own.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable`, `.missingComponent` or `.outOfMemory`.
  init(_ types: [MetadataObjectType], faceModel: FaceModel? = nil) throws(MediaError) {
    try MediaError.checkAvailable(types, among: Self.available)
    self.types = types
    let codeTypes = types.filter { $0 != .face }
    codes = codeTypes.isEmpty ? nil : try CodeReader(types: codeTypes)
    faces = types.contains(.face) ? try FaceReader(model: faceModel) : nil
  }

  /// Finds the objects of an image that has no other frames beside it.
  func objects(in image: LumaImage, at time: MediaTime, duration: MediaTime) -> [MetadataObject] {
    let found = codes?.read(image, .exhaustive) ?? []
    return MetadataObject.all(found, faces?.read(image) ?? [], in: image, time, duration)
  }
}

/// Finds objects in consecutive frames.
struct ObjectTracker {
  private var codes: CodeTracker?
  private var faces: FaceTracker?

  init(_ readers: ObjectReaders, agreement: Int) {
    codes = readers.codes.map { CodeTracker($0, agreement: agreement) }
    faces = readers.faces.map(FaceTracker.init)
  }

  /// Finds the objects of a frame whose center is in a part, or anywhere for nil.
  mutating func look(
    at image: LumaImage, in area: PixelRect? = nil, microseconds: Int64, time: MediaTime,
    duration: MediaTime
  ) -> [MetadataObject] {
    let codes = codes?.look(at: image, in: area, microseconds: microseconds) ?? []
    let faces = faces?.look(at: image, in: area, microseconds: microseconds) ?? []
    return MetadataObject.all(codes, faces, in: image, time, duration)
  }
}

extension MetadataObject {
  /// The codes and then the faces of an image.
  fileprivate static func all(
    _ codes: [DetectedCode], _ faces: [TrackedFace], in image: LumaImage, _ time: MediaTime,
    _ duration: MediaTime
  ) -> [MetadataObject] {
    codes.map {
      MetadataObject($0, width: image.width, height: image.height, at: time, duration: duration)
    }
      + faces.map {
        MetadataObject($0, width: image.width, height: image.height, at: time, duration: duration)
      }
  }
}
