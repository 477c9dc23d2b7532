// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankRecognition
import SlowmoCommands

/// Finds codes and faces for `scan` and `record --metadata`.
struct CodeRecognition: ObjectRecognition {
  func check(_ selection: ObjectSelection) throws(MediaError) { _ = try Self.model(selection) }

  func reader(
    of asset: Asset, _ selection: ObjectSelection, frames: Range<Int>
  ) throws(MediaError) -> any ObjectReader {
    try MovieObjects(
      MetadataObjectReader(
        asset, types: Self.types(selection.types), requiredAgreement: selection.agreement,
        faceModel: Self.model(selection), frames: frames,
        maximumPassRate: selection.maximumPassRate,
        maximumProcessorShare: selection.processorShare))
  }

  func search(
    _ session: CaptureSession, _ selection: ObjectSelection,
    _ handler: @escaping @Sendable ([RecognizedObject]) -> Void
  ) throws(MediaError) -> any ObjectSearch {
    let output = try MetadataOutput(
      session: session, types: Self.types(selection.types), faceModel: Self.model(selection))
    if let agreement = selection.agreement { output.requiredAgreement = agreement }
    if let rate = selection.maximumPassRate { output.maximumPassRate = rate }
    if let share = selection.processorShare { output.maximumProcessorShare = share }
    output.setMetadataObjectsHandler { frame in
      handler(frame.objects.map { RecognizedObject($0, of: frame) })
    }
    return SessionObjects(output: output)
  }

  private static func model(_ selection: ObjectSelection) throws(MediaError) -> FaceModel? {
    guard let path = selection.faceModel else { return nil }
    return try FaceModel(path: path)
  }

  /// Returns the types with the given names; the name `codes` means all codes.
  fileprivate static func types(_ names: [String]) -> [MetadataObjectType] {
    var types: [MetadataObjectType] = []
    for name in names.isEmpty ? ["codes"] : names {
      switch name {
      case "codes": types += MetadataObjectType.codes
      case "faces": types.append(.face)
      default: types.append(MetadataObjectType(rawValue: name))
      }
    }
    return types
  }
}

/// Finds codes and faces in the frames of a movie.
private final class MovieObjects: ObjectReader {
  private var reader: MetadataObjectReader

  init(_ reader: consuming MetadataObjectReader) { self.reader = reader }

  func next(isCancelled: () -> Bool) throws(MediaError) -> RecognizedFrame? {
    guard let frame = try reader.next(isCancelled: isCancelled) else { return nil }
    return RecognizedFrame(
      objects: frame.objects.map { RecognizedObject($0, of: frame) },
      index: Int(frame.frameIndex), isSearched: frame.isSearched)
  }
}

/// Finds codes and faces in the frames of a capture session.
private struct SessionObjects: ObjectSearch {
  let output: MetadataOutput

  var isBusy: Bool { output.isBusy }
  var offeredCount: Int64 { output.ledger.offered }
  var examinedCount: Int64 { output.ledger.examined }
  var searchedCount: Int64 { output.ledger.searched }

  func setTypes(_ names: [String]) throws(MediaError) {
    try output.setMetadataObjectTypes(names.isEmpty ? [] : CodeRecognition.types(names))
  }
}

extension RecognizedObject {
  fileprivate init(_ object: MetadataObject, of frame: MetadataObjectFrame) {
    self.init(object, frameIndex: frame.frameIndex, streamStart: frame.streamStart)
  }

  fileprivate init(_ object: MetadataObject, frameIndex: Int64, streamStart: MediaTime) {
    self.init(
      type: object.type.rawValue, text: object.stringValue, bytes: object.rawBytes,
      frameIndex: frameIndex, streamStart: streamStart, time: object.time,
      duration: object.duration,
      bounds: object.bounds, corners: object.corners, faceID: object.faceID,
      rollDegrees: object.rollAngle, yawDegrees: object.yawAngle)
  }
}
