// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore

/// Finds machine-readable codes and faces in the frames of a movie.
///
/// ```swift
/// var reader = try MetadataObjectReader(Asset(path: "race.mov"), types: [.qr])
/// for index in 0..<reader.frameCount {
///   for code in try reader.objects(ofFrame: index) { print(index, code.stringValue ?? "") }
/// }
/// ```
///
/// The reader follows objects from frame to frame as ``MetadataOutput`` does, so frames are read in
/// ascending order. A movie of one frame is searched like an image by ``CodeReader`` and
/// ``FaceReader``.
public struct MetadataObjectReader: ~Copyable {
  /// The number of frames in the movie.
  public let frameCount: Int
  private let frames: FrameTable
  private var reader: FrameReader
  private var extractor: LumaExtractor
  private var tracker: MetadataObjectTracker
  private let readers: ObjectReaders

  /// Opens the video of an asset.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - types: The types to find; all codes by default.
  ///   - requiredAgreement: The number of frames that must agree on the text of a code, at least 1.
  ///   - faceModel: A face detector to use instead of the one in the library.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable`; `.missingComponent` if the library for a
  ///   type is not installed; or as `FrameReader` does.
  public init(
    _ asset: Asset, types: [MetadataObjectType] = MetadataObjectType.codes,
    requiredAgreement: Int = 2, faceModel: FaceModel? = nil
  ) throws(MediaError) {
    let readers = try ObjectReaders(types, faceModel: faceModel)
    guard let track = asset.videoTrack else {
      throw MediaError(.invalidData, "\(asset.path) contains no video")
    }
    let reader = try FrameReader(asset)
    self.readers = readers
    self.reader = consume reader
    frames = track.frames
    frameCount = track.frames.entries.count
    extractor = LumaExtractor()
    tracker = MetadataObjectTracker(readers, agreement: max(1, requiredAgreement))
  }

  /// Finds the objects of a frame.
  ///
  /// - Parameter index: The index in presentation order, from 0; above the index of the previous
  ///   call.
  /// - Returns: The objects with the time and the duration of the frame in the movie, and in device
  ///   coordinates of the frame as it is stored.
  /// - Throws: `MediaError` as `FrameReader` does.
  public mutating func objects(ofFrame index: Int) throws(MediaError) -> [MetadataObject] {
    let frame = try reader.mediaFrame(at: index)
    let time = try frames.time(ofFrame: Int64(index))
    let end = try frames.time(ofFrame: Int64(index + 1))
    let duration = MediaTime(exactly: end.seconds - time.seconds) ?? .zero
    let (readers, isAlone) = (readers, frameCount == 1)
    // The closure cannot access `self`, because `self.extractor` is in use while it runs.
    var tracker = tracker
    defer { self.tracker = tracker }
    do throws(CallFailure) {
      return try extractor.withLuma(of: frame) { luma in
        isAlone
          ? readers.objects(in: luma, at: time, duration: duration)
          : tracker.look(
            at: luma, microseconds: time.wholeNanoseconds / 1_000, time: time, duration: duration)
      }
    } catch { throw MediaError(reading: error) }
  }
}
