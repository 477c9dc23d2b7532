// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

extension PhotoOutput {
  /// Whether the connected camera's frames can be stored as Live Photos.
  public var isLivePhotoCaptureSupported: Bool { !availablePhotoFormats.isEmpty }

  /// Whether Live Photos can be requested.
  public var isLivePhotoCaptureEnabled: Bool { processor.livePhotos != nil }

  /// Enables or disables Live Photos.
  ///
  /// While Live Photos are enabled, the session has an additional movie output, which keeps the
  /// last 1.5 s of frames and audio in memory. In the first 1.5 s of the session, the movie of a
  /// Live Photo starts less than 1.5 s before the photo. Disable Live Photos before you remove this
  /// output from its session. Movies in progress then end early.
  ///
  /// - Throws: `MediaError` with `.notConnected` if the output belongs to no session with a camera,
  ///   or `.badConfiguration` if the session rejects the movie output.
  public func setLivePhotoCaptureEnabled(_ isEnabled: Bool) throws(MediaError) {
    guard isEnabled != isLivePhotoCaptureEnabled else { return }
    guard isEnabled else {
      let recorder = processor.livePhotos
      processor.livePhotos = nil
      recorder?.end()
      if let recorder { session?.removeOutput(recorder.output) }
      return
    }
    guard let session, isLivePhotoCaptureSupported else {
      throw MediaError(
        .notConnected, "Live Photos need a camera whose frames can be stored as photos",
        recovery: "add the output to a session with a camera first")
    }
    let recorder = LivePhotoRecorder { [weak processor, options] ring in
      let start: Int64? =
        switch ring {
        case .empty: nil
        case .filling: processor?.now
        // A photo does not wait for a movie that cannot be recorded.
        case .failed: .min
        }
      options.ringStart.store(start ?? .max, ordering: .relaxed)
    } didEnd: { [weak processor] request, result in
      processor?.endMovie(request, result)
    }
    try session.addOutput(recorder.output)
    processor.livePhotos = recorder
    if session.isRunning { recorder.begin() }
  }

  /// The number of Live Photos whose movies are being recorded.
  public var livePhotosInProgressCount: Int { processor.livePhotos?.count ?? 0 }

  /// Sets the rotation, mirroring and zoom of the movies to those of the photos.
  func alignMovies(with connection: CaptureConnection) {
    guard let recorder = processor.livePhotos,
      let movie = session?.connections.first(where: {
        $0.output === recorder.output && $0.mediaType == .video
      })
    else { return }
    // Both connections support the same settings, so this does not fail.
    try? movie.setVideoRotationAngle(connection.videoRotationAngle)
    movie.automaticallyAdjustsVideoMirroring = false
    try? movie.setVideoMirrored(connection.isVideoMirrored)
    try? movie.setVideoScaleAndCropFactor(connection.videoScaleAndCropFactor)
  }
}
