// SPDX-License-Identifier: Apache-2.0

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

  func beginMovie(
    of photo: Photo, _ time: Int64, _ identifier: String, _ settings: PhotoSettings
  ) {
    let id = photo.uniqueID
    guard let live = settings.livePhoto,
      let path = live.moviePath ?? photo.path.map({ "\($0.withoutExtension).mov" })
    else { return }
    let recorder = state.withLock { state in
      state.records[id]?.awaitsMovie = true
      return state.livePhotos
    }
    let request = LivePhotoRecorder.Request(
      id: id, time: time, contentIdentifier: identifier, photoPath: photo.path, moviePath: path,
      overwrites: settings.destination.overwrites,
      embedsMovie: live.embedsMovie && photo.format == .jpeg, xmp: settings.xmp)
    guard let recorder else {
      return endMovie(
        request,
        .failure(MediaError(.cancelled, "photo \(id): Live Photos were disabled meanwhile")))
    }
    recorder.record(request)
  }

  /// Ends a movie.
  ///
  /// Called on the recorder's thread.
  func endMovie(
    _ request: LivePhotoRecorder.Request, _ recorded: Result<RecordingReport, MediaError>
  ) {
    let id = request.id
    let result = Result { () throws(MediaError) in
      let report = try recorded.get()
      if let problem = report.problem { throw problem }
      let time = report.trigger?.time ?? .zero
      if request.embedsMovie, let photo = request.photoPath {
        try MotionPhotoFile.append(movie: report.path, to: photo, at: time, request.xmp)
      }
      return LivePhotoMovie(
        path: report.path, contentIdentifier: request.contentIdentifier, duration: report.duration,
        photoDisplayTime: time, isEmbedded: request.embedsMovie && request.photoPath != nil)
    }
    if case .failure(let error) = result {
      state.withLock { state in
        if state.records[id]?.error == nil { state.records[id]?.error = error }
      }
    }
    send(.didFinishLivePhotoMovie(id: id, result))
    let ended = state.withLock { state in
      state.records[id]?.awaitsMovie = false
      return state.records[id]?.photosEnded
    }
    switch ended {
    case .success: finish(id, nil)
    case .failure(let error): finish(id, error)
    case nil: break
    }
  }
}
