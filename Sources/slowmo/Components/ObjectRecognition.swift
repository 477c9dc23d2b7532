// SPDX-License-Identifier: Apache-2.0

package import Overcrank

/// The kinds of objects to find in frames.
package struct ObjectSelection: Sendable {
  /// The names of the types of objects; empty for all codes.
  package var types: [String] = []
  /// The number of frames that must agree on the text of a code before the code is reported; nil for
  /// the default.
  package var agreement: Int?
  /// The greatest number of frames per second that are searched as a whole; nil for the default.
  package var maximumPassRate: FrameRate?
  /// The greatest fraction of a processor that the search may use, up to 1; nil for the default.
  package var processorShare: Double?
  /// The path of a face detector that was trained with dlib; nil for dlib's own detector.
  package var faceModel: String?
}

/// Finds objects in frames: codes and faces.
package protocol ObjectRecognition: Sendable {
  /// Checks a selection of objects before any work starts.
  ///
  /// - Parameter selection: The objects to find.
  /// - Throws: `MediaError` as `FaceModel` does for the selected model.
  func check(_ selection: ObjectSelection) throws(MediaError)

  /// Opens a movie to find objects in it.
  ///
  /// - Parameters:
  ///   - asset: The movie.
  ///   - selection: The objects to find.
  ///   - frames: The frames to search.
  /// - Returns: The reader of the movie's objects.
  /// - Throws: `MediaError` with `metadata_type_unavailable`, as `FaceModel` does for the selected model, or
  ///   as `FrameReader` does.
  func reader(
    of asset: Asset, _ selection: ObjectSelection, frames: Range<Int>
  ) throws(MediaError) -> any ObjectReader

  /// Searches the frames of a session, beginning with the first frame.
  ///
  /// - Parameters:
  ///   - session: The session.
  ///   - selection: The objects to find.
  ///   - handler: Called with the objects of a frame, one call at a time.
  /// - Returns: The search, which lasts as long as the session keeps it as an output.
  /// - Throws: `MediaError` with `metadata_type_unavailable`, `.notConvertible` or `.notConnected`, or as
  ///   `FaceModel` does for the selected model.
  func search(
    _ session: CaptureSession, _ selection: ObjectSelection,
    _ handler: @escaping @Sendable ([RecognizedObject]) -> Void
  ) throws(MediaError) -> any ObjectSearch
}

/// Finds objects in the frames of a movie.
package protocol ObjectReader: AnyObject {
  /// Waits for the next frame.
  ///
  /// - Parameter isCancelled: Whether to decode no more frames.
  /// - Returns: The objects of the frame; nil after the last one.
  /// - Throws: `MediaError` as `FrameReader` does.
  func next(isCancelled: () -> Bool) throws(MediaError) -> RecognizedFrame?
}

/// A frame of a movie and its objects.
package struct RecognizedFrame: Sendable {
  package var objects: [RecognizedObject]
  package var index: Int
  /// Whether the frame was searched for new objects, and not only around known ones.
  package var isSearched: Bool

  /// Creates a frame.
  package init(objects: [RecognizedObject], index: Int, isSearched: Bool) {
    (self.objects, self.index, self.isSearched) = (objects, index, isSearched)
  }
}

/// A search in the frames of a running session.
package protocol ObjectSearch: Sendable {
  /// Whether a frame waits for the search or is being searched.
  var isBusy: Bool { get }
  /// The number of frames that arrived at the search.
  var offeredCount: Int64 { get }
  /// The number of frames that were searched, some of them only around known objects.
  var examinedCount: Int64 { get }
  /// The number of frames that were searched as a whole.
  var searchedCount: Int64 { get }

  /// Changes the types of objects to find; none ends the search until types are set again.
  ///
  /// - Throws: `MediaError` with `metadata_type_unavailable`.
  func setTypes(_ names: [String]) throws(MediaError)
}

/// An object that was found in a frame.
package struct RecognizedObject: Sendable {
  /// The name of the object's type, such as `qr`.
  package var type: String
  /// The text of a code; nil if the code's bytes are not text.
  package var text: String?
  /// The bytes of a code.
  package var bytes: [UInt8]
  /// The index of the frame, from 0.
  package var frameIndex: Int64
  /// The time of the first frame: zero for a movie, otherwise on the capture clock.
  package var streamStart: MediaTime
  /// The time of the frame: in the movie, otherwise on the capture clock.
  package var time: MediaTime
  /// The duration of the frame.
  package var duration: MediaTime
  /// The left edge, upper edge, width and height, each as a fraction of the frame from 0 to 1.
  package var bounds: Rect
  /// The corners, in fractions of the frame from 0 to 1.
  package var corners: [Point]
  /// The id of a face; nil for a code.
  package var faceID: Int64?
  /// The clockwise rotation of a face in the image; nil if unknown.
  package var rollDegrees: Double?
  /// The rotation of a face about its vertical axis; nil if unknown.
  package var yawDegrees: Double?

  /// Creates an object.
  package init(
    type: String, text: String?, bytes: [UInt8], frameIndex: Int64, streamStart: MediaTime,
    time: MediaTime, duration: MediaTime, bounds: Rect, corners: [Point],
    faceID: Int64?, rollDegrees: Double?, yawDegrees: Double?
  ) {
    (self.type, self.text, self.bytes) = (type, text, bytes)
    (self.frameIndex, self.streamStart) = (frameIndex, streamStart)
    (self.time, self.duration) = (time, duration)
    (self.bounds, self.corners) = (bounds, corners)
    (self.faceID, self.rollDegrees, self.yawDegrees) = (faceID, rollDegrees, yawDegrees)
  }
}

extension FullProgram {
  /// Returns this program's object recognition, or replaces this program by `slowmo-full`, which
  /// has it.
  ///
  /// - Throws: `CommandError` if neither this program has it nor `slowmo-full` is installed.
  static func recognition(alternative: String) throws -> any ObjectRecognition {
    guard let recognition = OptionalComponents.current.recognition else {
      try replaceThisProgram(for: "the search for codes and faces", alternative: alternative)
    }
    return recognition
  }
}
