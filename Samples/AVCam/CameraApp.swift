// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// A session with a preview, photos and movies, and the settings that the user can change.
final class CameraApp {
  /// The messages that tasks send to the main thread.
  final class Inbox: Sendable {
    private let lines = Mutex<[String]>([])
    func put(_ line: String) { lines.withLock { $0.append(line) } }
    func takeAll() -> [String] {
      lines.withLock { lines in
        defer { lines = [] }
        return lines
      }
    }
  }

  let session = CaptureSession()
  let preview: VideoPreview
  private(set) var isMovieMode = false
  private(set) var isInterrupted = false
  private(set) var pendingPhotoCount = 0
  private(set) var finishedMovieCount = 0
  private(set) var endedInterruptionCount = 0
  var isRecording: Bool { movie.isRecording }
  private let photos = PhotoOutput()
  private let movie = MovieFileOutput(settings: RecordingSettings(path: "avcam_movie.mov"))
  private let inbox = Inbox()
  private let devices: [CaptureDevice]
  private var position = 0
  private var input: DeviceInput
  private var flash = FlashMode.off
  private var message = ""
  private var (photoNumber, movieNumber) = (0, 0)

  init(_ devices: [CaptureDevice]) throws {
    self.devices = devices
    input = try DeviceInput(device: devices[0], format: devices[0].fastestFormat())
    try session.addInput(input)
    preview = try VideoPreview(session: session)
    try session.addOutput(photos)
    try session.addOutput(movie)
    let (events, takes) = (session.events, movie.events)
    let inbox = inbox
    Task {
      for await event in events {
        switch event {
        case .wasInterrupted(_, let reason): inbox.put("interrupted: \(reason.rawValue)")
        case .interruptionEnded: inbox.put("resumed")
        case .runtimeError(let error): inbox.put("failed: \(error.message)")
        case .didOmitInput(let omitted): inbox.put("no audio: \(omitted.error.message)")
        case .didStartRunning, .didStopRunning, .activeFormatDidChange: break
        }
      }
    }
    Task {
      for await event in takes {
        switch event {
        case .didFinish(let report):
          inbox.put("movie \(report.path): \(report.stoppedBy.rawValue)")
        case .didFail(let path, let error): inbox.put("movie \(path): \(error.message)")
        default: break
        }
      }
    }
    try session.startRunning()
  }

  /// The text at the lower edge: the mode, the flash, Live Photos in progress, and the last
  /// message.
  var status: String {
    var parts = [isMovieMode ? (isRecording ? "RECORDING" : "MOVIE") : "PHOTO"]
    parts.append(isInterrupted ? "interrupted" : input.format.id)
    if flash != .off { parts.append("flash \(flash.rawValue)") }
    if photos.isLivePhotoCaptureEnabled {
      let count = photos.livePhotosInProgressCount
      parts.append(count > 0 ? "LIVE (\(count))" : "live")
    }
    if !message.isEmpty { parts.append(message) }
    return parts.joined(separator: " | ")
  }

  /// Handles the messages that tasks have sent.
  func update() {
    for line in inbox.takeAll() {
      switch line.prefix(while: { $0 != " " && $0 != ":" }) {
      case "photo", "live", "error": pendingPhotoCount -= 1
      case "movie": finishedMovieCount += 1
      case "interrupted": isInterrupted = true
      case "resumed":
        isInterrupted = false
        endedInterruptionCount += 1
      default: break
      }
      say(line)
    }
  }

  /// Stops the camera.
  func close() {
    session.stopRunning()
    update()
  }

  /// Executes the command of a key.
  func press(_ key: String) throws {
    switch key {
    case "space": isMovieMode ? try toggleMovie() : takePhoto()
    case "m": isMovieMode.toggle()
    case "c": try changeCamera()
    case "l": try photos.setLivePhotoCaptureEnabled(!photos.isLivePhotoCaptureEnabled)
    case "f": changeFlash()
    default: break
    }
  }

  private func say(_ line: String) {
    print(line)
    message = line
  }

  private func takePhoto() {
    photoNumber += 1
    let path = "avcam_\(photoNumber).jpg"
    var settings = PhotoSettings(destination: .file(path, overwrites: true))
    settings.flashMode = flash
    if photos.isLivePhotoCaptureEnabled { settings.livePhoto = LivePhotoSettings() }
    pendingPhotoCount += 1
    let (photos, inbox, chosen) = (photos, inbox, settings)
    Task {
      do throws(MediaError) {
        let taken = try await photos.photos(with: chosen)
        let movie = taken.first?.livePhotoMovie
        inbox.put(movie.map { "live \(path) with \($0.path)" } ?? "photo \(path)")
      } catch { inbox.put("error: \(error.message)") }
    }
  }

  private func toggleMovie() throws {
    if isRecording { return movie.stop() }
    movieNumber += 1
    try movie.startRecording(to: "avcam_movie_\(movieNumber).mov")
  }

  /// Replaces the camera by the next one.
  ///
  /// The outputs stay.
  private func changeCamera() throws {
    guard devices.count > 1, !isRecording else { return }
    position = (position + 1) % devices.count
    let device = devices[position]
    let next = try DeviceInput(device: device, format: device.fastestFormat())
    session.beginConfiguration()
    session.removeInput(input)
    try session.addInput(next)
    try session.commitConfiguration()
    input = next
    flash = .off
    say("camera \(device.address)")
  }

  private func changeFlash() {
    let modes = photos.supportedFlashModes
    let index = modes.firstIndex(of: flash) ?? 0
    flash = modes[(index + 1) % modes.count]
    say("flash \(flash.rawValue)")
  }

  /// Focuses and exposes at a point of the camera's image.
  func focus(at point: Point) {
    do throws(MediaError) {
      let controls = try CameraControls(device: input.device)
      if controls.isFocusPointOfInterestSupported { try controls.setFocusPointOfInterest(point) }
      if controls.isExposurePointOfInterestSupported {
        try controls.setExposurePointOfInterest(point)
      }
      say("focus at \(point.x), \(point.y)")
    } catch { say(error.message) }
  }
}
