// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankAssets
public import OvercrankMediaCore

/// Finds machine-readable codes and faces in the frames of a movie.
///
/// ```swift
/// var reader = try MetadataObjectReader(Asset(path: "race.mov"), types: [.qr])
/// while let frame = try reader.next() {
///   for code in frame.objects { print(frame.frameIndex, code.stringValue ?? "") }
/// }
/// ```
///
/// A file has no deadline: each frame is searched, on as many threads as the machine has processors.
/// The result does not depend on their number. Codes are searched for in each frame. New faces are
/// searched for in every twelfth frame and after a change of scene, and each face is followed from
/// there in both directions. A movie of one frame is searched like an image by ``CodeReader`` and
/// ``FaceReader``.
///
/// Objects of a frame are known a few frames later, because an object is also searched for in the
/// frames before the one that showed it first. In asynchronous code, use
/// `Asset.metadataObjects(of:requiredAgreement:faceModel:frames:maximumPassRate:maximumProcessorShare:)`. Use a reader on
/// one thread at a time.
public struct MetadataObjectReader: ~Copyable {
  private let search: MovieObjectSearch
  private var last: MetadataObjectFrame?

  /// Opens the video of an asset.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - types: The types to find; all codes by default.
  ///   - requiredAgreement: The number of frames that must agree on the text of a code, at least 1. The
  ///     code is reported from the first of these frames. By default, one frame is enough if the code
  ///     has a checksum, or if an enlarged image of the code shows the same text; else two frames.
  ///   - faceModel: A face detector to use instead of the one in the library.
  ///   - frames: The frames to search, counted from 0; all by default.
  ///   - maximumPassRate: The greatest number of frames per second of the movie that are searched as a
  ///     whole. The other frames are searched only around known objects. By default, all are searched.
  ///   - maximumProcessorShare: The greatest fraction of a processor that the search may use, up to 1. The
  ///     calling thread sleeps to stay below it. By default, all processors are used.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable`; `.missingComponent` if the library for a
  ///   type is not installed; `.outsideSource` for frames that the movie does not have; `.outOfMemory`;
  ///   or as `FrameReader` does.
  public init(
    _ asset: Asset, types: [MetadataObjectType] = MetadataObjectType.codes,
    requiredAgreement: Int? = nil, faceModel: FaceModel? = nil, frames: Range<Int>? = nil,
    maximumPassRate: FrameRate? = nil, maximumProcessorShare: Double? = nil
  ) throws(MediaError) {
    search = try MovieObjectSearch(
      asset, ObjectReaders(types, faceModel: faceModel),
      .init(
        requiredAgreement: requiredAgreement, frames: frames, maximumPassRate: maximumPassRate,
        maximumProcessorShare: maximumProcessorShare))
  }

  init(searching search: MovieObjectSearch) { self.search = search }

  /// The number of frames in the movie.
  public var frameCount: Int { search.frameCount }

  /// Returns the objects of the next frame, also if it has none.
  ///
  /// Blocks until the frame is searched.
  ///
  /// - Parameter isCancelled: Whether to decode no more frames. It is called for each frame, on this
  ///   thread. The frames that are already decoded are still returned.
  /// - Returns: The objects with the time and the duration of the frame in the movie, and in device
  ///   coordinates of the frame as it is stored; nil after the last frame.
  /// - Throws: `MediaError` as `FrameReader` does, after the frames before the one that failed.
  public mutating func next(
    isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> MetadataObjectFrame? {
    try search.next(isCancelled: isCancelled)
  }

  /// Returns the objects of a frame.
  ///
  /// The frames before it are searched too, because objects are followed through them.
  ///
  /// - Parameter index: The index in presentation order, from 0; at least that of the previous call.
  /// - Returns: As ``next(isCancelled:)``.
  /// - Throws: `MediaError` with `.outsideSource` for a frame that was already passed or is not
  ///   searched, or as `FrameReader` does.
  public mutating func objects(ofFrame index: Int) throws(MediaError) -> [MetadataObject] {
    while last.map({ $0.frameIndex < index }) ?? true {
      guard let next = try search.next() else { break }
      last = next
    }
    guard let last, last.frameIndex == index else {
      throw MediaError(
        .outsideSource, "frame \(index) is not among the frames that are still searched",
        recovery: "choose from the \(frameCount) frames in ascending order, counted from 0")
    }
    return last.objects
  }
}

extension Asset {
  /// Searches the frames of the video for codes and faces.
  ///
  /// ```swift
  /// for try await frame in asset.metadataObjects(of: [.qr, .face]) {
  ///   for object in frame.objects { print(frame.frameIndex, object.bounds) }
  /// }
  /// ```
  ///
  /// Each iteration searches from the start, as ``MetadataObjectReader`` does, and throws its errors;
  /// or `.cancelled` if its task is cancelled. Waiting for a frame suspends the task.
  ///
  /// - Parameters:
  ///   - types: The types to find; all codes by default.
  ///   - requiredAgreement: The number of frames that must agree on the text of a code, at least 1. The
  ///     code is reported from the first of these frames. By default, one frame is enough if the code
  ///     has a checksum, or if an enlarged image of the code shows the same text; else two frames.
  ///   - faceModel: A face detector to use instead of the one in the library.
  ///   - frames: The frames to search, counted from 0; all by default.
  ///   - maximumPassRate: The greatest number of frames per second of the movie that are searched as a
  ///     whole; all by default.
  ///   - maximumProcessorShare: The greatest fraction of a processor that the search may use, up to 1; all
  ///     processors by default.
  /// - Returns: Each frame with its objects, also if it has none. Each iterator is used by one task at
  ///   a time.
  public func metadataObjects(
    of types: [MetadataObjectType] = MetadataObjectType.codes, requiredAgreement: Int? = nil,
    faceModel: FaceModel? = nil, frames: Range<Int>? = nil, maximumPassRate: FrameRate? = nil,
    maximumProcessorShare: Double? = nil
  ) -> some AsyncSequence<MetadataObjectFrame, MediaError> & Sendable {
    MovieObjectSequence(
      asset: self, types: types, faceModel: faceModel,
      limits: .init(
        requiredAgreement: requiredAgreement, frames: frames, maximumPassRate: maximumPassRate,
        maximumProcessorShare: maximumProcessorShare))
  }
}

/// The frames of a movie with their objects.
private struct MovieObjectSequence: AsyncSequence, Sendable {
  let asset: Asset
  let types: [MetadataObjectType]
  let faceModel: FaceModel?
  let limits: MovieObjectSearch.Limits

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let feed: MovieObjectFeed

    mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(MediaError) -> MetadataObjectFrame? { try await feed.next() }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(feed: MovieObjectFeed(self)) }
}

/// Searches on a dispatch queue, because a search blocks its thread.
private final class MovieObjectFeed: Sendable {
  private let request: MovieObjectSequence
  private let queue = DispatchQueue(label: "metadata objects")
  // Accessed only on the dispatch queue.
  private nonisolated(unsafe) var search: MovieObjectSearch?

  init(_ request: MovieObjectSequence) { self.request = request }

  func next() async throws(MediaError) -> MetadataObjectFrame? {
    if Task.isCancelled {
      throw MediaError(.cancelled, "the search of \(request.asset.path) was cancelled")
    }
    let result: Result<MetadataObjectFrame?, MediaError> = await withCheckedContinuation { result in
      queue.async {
        result.resume(returning: Result { () throws(MediaError) in try self.read() })
      }
    }
    return try result.get()
  }

  private func read() throws(MediaError) -> MetadataObjectFrame? {
    if let search { return try search.next() }
    let opened = try MovieObjectSearch(
      request.asset, ObjectReaders(request.types, faceModel: request.faceModel), request.limits)
    search = opened
    return try opened.next()
  }
}
