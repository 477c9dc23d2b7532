// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// The code reader and the face reader; each is nil if no type needs it.
struct ObjectReaders: Sendable {
  /// The types of objects that the readers find.
  let types: [MetadataObjectType]
  let codes: CodeReader?
  let faces: FaceReader?
  private let faceModel: FaceModel?

  /// All types that can be found.
  static let available = MetadataObjectType.codes + [.face]

  /// Creates the readers for a list of types.
  ///
  /// - Parameters:
  ///   - types: The types.
  ///   - faceModel: The face detector; nil for dlib's own detector.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable`, `.missingComponent` or `.outOfMemory`.
  init(_ types: [MetadataObjectType], faceModel: FaceModel? = nil) throws(MediaError) {
    try MediaError.checkAvailable(types, among: Self.available)
    (self.types, self.faceModel) = (types, faceModel)
    let codeTypes = types.filter { $0 != .face }
    codes = codeTypes.isEmpty ? nil : try CodeReader(types: codeTypes)
    faces = types.contains(.face) ? try FaceReader(model: faceModel) : nil
  }

  /// Creates another reader of faces, because a reader searches only one image at a time.
  ///
  /// - Returns: The reader; nil if no type needs it.
  /// - Throws: `MediaError` with `.outOfMemory`.
  func anotherFaceReader() throws(MediaError) -> FaceReader? {
    faces == nil ? nil : try FaceReader(model: faceModel)
  }

  /// Finds the objects of a single image, without following them.
  func objects(in image: LumaImage, at time: MediaTime, duration: MediaTime) -> [MetadataObject] {
    let found = codes?.read(image, .exhaustive) ?? []
    return MetadataObject.all(found, faces?.read(image) ?? [], in: image, time, duration)
  }
}

/// Finds objects in consecutive frames.
struct MetadataObjectTracker {
  private var codes: CodeTracker?
  private var faces: FaceTracker?

  init(
    _ readers: ObjectReaders, agreement: Int, passRate: FrameRate = MetadataOutput.usualPassRate
  ) {
    codes = readers.codes.map { CodeTracker($0, agreement: agreement, passRate: passRate) }
    faces = readers.faces.map { FaceTracker($0, passRate: passRate) }
  }

  /// Whether the last frame was searched as a whole for all types.
  var didSearchWholeFrame: Bool {
    codes?.didSearchWholeFrame != false && faces?.didSearchWholeFrame != false
  }

  /// Finds the objects of a frame whose center is in `area`; in the whole frame if `area` is nil.
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
  /// Returns the codes of an image, followed by its faces.
  static func all(
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
