// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRecording
import Synchronization

extension PhotoProcessor {
  /// The recorder of movies, or nil while Live Photos are disabled.
  var livePhotos: LivePhotoRecorder? {
    get { state.withLock { $0.livePhotos } }
    set { state.withLock { $0.livePhotos = newValue } }
  }

  /// The result of storing the photo of a movie.
  enum PhotoStorage {
    /// In a file, or in memory if there is no path.
    case stored(path: String?)
    case lost
  }

  /// The end of a movie.
  struct EndedMovie {
    let request: LivePhotoRecorder.Request
    let report: Result<RecordingReport, MediaError>
  }

  /// Begins the movie of a photo that is not yet stored.
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

  /// Ends a movie, or keeps its end until its photo is stored.
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

  /// Notes the end of the photo that a movie belongs to.
  ///
  /// - Parameters:
  ///   - id: The number of the capture.
  ///   - photo: The stored photo, or nil if it could not be stored.
  func endPhotoOfMovie(_ id: Int64, _ photo: Photo?) {
    let ended = state.withLock { state in
      state.records[id]?.storage = photo.map { .stored(path: $0.path) } ?? .lost
      return state.records[id]?.endedMovie.take()
    }
    if let ended { finish(ended) }
  }

  /// Ends a movie whose photo is stored or lost.
  private func finish(_ ended: EndedMovie) {
    let (request, id) = (ended.request, ended.request.id)
    let storage = state.withLock { $0.records[id]?.storage }
    let result = Result { () throws(MediaError) in
      let report = try ended.report.get()
      guard case .stored(let photoPath) = storage else {
        // A movie alone is no Live Photo.
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
