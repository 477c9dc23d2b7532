// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRecording
import Synchronization

extension PhotoProcessor {
  /// The recorder of Live Photo movies; nil while Live Photos are disabled.
  var livePhotos: LivePhotoRecorder? {
    get { state.withLock { $0.livePhotos } }
    set { state.withLock { $0.livePhotos = newValue } }
  }

  /// The result of storing a Live Photo's photo.
  enum PhotoStorage {
    /// The photo is stored in a file, or in memory if `path` is nil.
    case stored(path: String?)
    case lost
  }

  /// A movie that has ended, and its result.
  struct EndedMovie {
    let request: LivePhotoRecorder.Request
    let report: Result<RecordingReport, MediaError>
  }

  /// Starts the movie of a photo that is not stored yet.
  func beginMovie(
    of photo: Photo, _ time: Int64, _ identifier: String, _ settings: PhotoSettings
  ) {
    let id = photo.uniqueID
    guard let live = settings.livePhoto,
      let path = live.moviePath ?? photo.path.map({ "\($0.withoutExtension).mov" })
    else { return }
    let recorder = state.withLock { state in
      state.records[id]?.openEnds.insert(.movie)
      return state.livePhotos
    }
    let request = LivePhotoRecorder.Request(
      id: id, time: time, contentIdentifier: identifier, moviePath: path,
      overwrites: settings.destination.overwrites,
      embedsMovie: live.embedsMovie && photo.format == .jpeg, xmp: settings.xmp)
    guard let recorder else {
      return endMovie(
        request,
        .failure(MediaError(.cancelled, "photo \(id): Live Photos have been disabled")))
    }
    recorder.record(request)
  }

  /// Finishes a movie, or keeps its result until the photo is stored.
  ///
  /// Called on the recorder's thread.
  func endMovie(
    _ request: LivePhotoRecorder.Request, _ report: Result<RecordingReport, MediaError>
  ) {
    let ended = EndedMovie(request: request, report: report)
    let isReady = state.withLock { state in
      if state.records[request.id]?.storage != nil { return true }
      state.records[request.id]?.endedMovie = ended
      return false
    }
    if isReady { finish(ended) }
  }

  /// Records whether the photo of a movie was stored.
  ///
  /// - Parameters:
  ///   - id: The number that identifies the capture.
  ///   - photo: The stored photo, or nil if it could not be stored.
  func endPhotoOfMovie(_ id: Int64, _ photo: Photo?) {
    let ended = state.withLock { state in
      state.records[id]?.storage = photo.map { .stored(path: $0.path) } ?? .lost
      return state.records[id]?.endedMovie.take()
    }
    if let ended { finish(ended) }
  }

  /// Finishes a movie after its photo has been stored or has failed.
  private func finish(_ ended: EndedMovie) {
    let (request, id) = (ended.request, ended.request.id)
    let storage = state.withLock { $0.records[id]?.storage }
    let result = Result { () throws(MediaError) in
      let report = try ended.report.get()
      guard case .stored(let photoPath) = storage else {
        // The photo is missing, so the movie is removed.
        unlink(report.path.systemPath)
        throw MediaError(.cancelled, "photo \(id) was not stored, so its movie was removed")
      }
      if let problem = report.problem { throw problem }
      let time = report.trigger?.time ?? .zero
      let target = request.embedsMovie ? photoPath : nil
      if let target {
        try MotionPhotoFile.append(movie: report.path, to: target, at: time, request.xmp)
      }
      return LivePhotoMovie(
        path: report.path, contentIdentifier: request.contentIdentifier, duration: report.duration,
        photoDisplayTime: time, isEmbedded: target != nil)
    }
    if case .failure(let error) = result { note(error, of: id) }
    send(.didFinishLivePhotoMovie(id: id, result))
    endWait(for: id, .movie)
  }
}
