// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCameraControls
import OvercrankCapture
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// A capture that sets the camera's exposure, light or mode before its photos.
///
/// It runs on a separate thread.
final class ControlledCapture: Sendable {
  private let id: Int64
  private let settings: PhotoSettings
  private let controls: PhotoControls?
  private let stillMode: StillMode?
  private let channel: PhotoChannel
  private let processor: PhotoProcessor
  /// Signaled when the last frame of a request was processed, and when the capture has ended.
  private let progressed = DispatchSemaphore(value: 0)
  private let meanLevel = Mutex<Double?>(nil)

  /// The mean luma below which the automatic flash is used, from 0 (black) to 1 (white).
  private static let darkLevel = 0.25
  /// The number of frames after which a new setting is visible in the image.
  ///
  /// Drivers and sensors delay settings by up to three frames, and the exposure of the fourth frame
  /// may already have begun.
  private static let settlingFrames: Int64 = 5
  /// The time in microseconds after which automatic exposure has adapted to a new exposure
  /// compensation.
  private static let settlingTime: Int64 = 400_000

  /// Whether the camera is switched to another mode for the photos.
  var changesMode: Bool { stillMode != nil }

  init(
    _ settings: PhotoSettings, _ preparation: PhotoPreparation, _ channel: PhotoChannel,
    _ processor: PhotoProcessor
  ) {
    id = settings.uniqueID
    self.settings = settings
    controls = preparation.controls
    stillMode = preparation.stillMode
    (self.channel, self.processor) = (channel, processor)
  }

  /// Starts the capture.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  func start() throws(MediaError) { try BlockingThread.started { [self] in run() }.detach() }

  /// Wakes the thread.
  ///
  /// Called when the last frame of a request was processed, and when the capture has ended.
  func noteProgress(meanLevel level: Double? = nil) {
    if let level { meanLevel.withLock { $0 = level } }
    progressed.signal()
  }

  private func run() {
    var takenCount = 0
    do throws(MediaError) {
      try stillMode?.begin()
      let channel = stillMode == nil ? channel : try processor.currentChannel(for: id)
      let isLit = try prepareLight(channel)
      let exposures: [BracketedExposure?] = settings.bracket.isEmpty ? [nil] : settings.bracket
      // The first frames after a change of the mode are often dark or incomplete.
      let isSettling = isLit || stillMode != nil
      for (index, exposure) in exposures.enumerated() {
        guard processor.isWanted(id) else { break }
        var settling: Int64 = isSettling ? Self.settlingFrames * channel.source.period : 0
        if let exposure {
          try controls?.set(exposure)
          settling = max(settling, Self.settlingFrames * channel.source.period)
          if case .automatic = exposure { settling = max(settling, Self.settlingTime) }
        }
        var request = PhotoRequest(
          action: .take, id: id, time: channel.source.now + settling,
          count: settings.bracket.isEmpty ? settings.photoCount : 1)
        request.interval = settings.intervalNanoseconds
        (request.firstIndex, request.isFinal) = (index, index == exposures.count - 1)
        if settings.livePhoto?.waitsForPreRoll == true {
          request.preRoll = LivePhotoRecorder.halfDuration.wholeMicroseconds
        }
        try post(request, channel, isStoppable: true)
        takenCount += 1
      }
      if takenCount < exposures.count {
        processor.end(id, takenCount: takenCount, .stopped)
      }
    } catch {
      processor.end(id, takenCount: takenCount, .failed(error))
    }
    restore { () throws(MediaError) in try controls?.restoreLight() }
    restore { () throws(MediaError) in try controls?.restoreExposure() }
    restore { () throws(MediaError) in try stillMode?.end() }
    processor.endWait(for: id, .restoring)
  }

  /// Runs a step that restores the camera.
  ///
  /// An error becomes the error of the capture, unless the capture already has one.
  private func restore(_ work: () throws(MediaError) -> Void) {
    do throws(MediaError) { try work() } catch { processor.note(error, of: id) }
  }

  /// Switches the light on if the flash mode requires it.
  ///
  /// Returns whether it was switched on.
  private func prepareLight(_ channel: PhotoChannel) throws(MediaError) -> Bool {
    guard let controls else { return false }
    switch settings.flashMode {
    case .off:
      if controls.hasLight { processor.setFlash(id, 16) }
      return false
    case .on: processor.setFlash(id, 9)
    case .auto:
      guard controls.hasLight, try isDark(channel) else {
        if controls.hasLight { processor.setFlash(id, 24) }
        return false
      }
      processor.setFlash(id, 25)
    }
    try controls.light()
    return true
  }

  /// Whether the current frame of the camera is dark.
  private func isDark(_ channel: PhotoChannel) throws(MediaError) -> Bool {
    try post(PhotoRequest(action: .measure, id: id, time: channel.source.now), channel)
    return meanLevel.withLock { $0 ?? 1 } < Self.darkLevel
  }

  /// Sends a request to the capture thread, and waits until the request is done.
  private func post(
    _ request: PhotoRequest, _ channel: PhotoChannel, isStoppable: Bool = false
  ) throws(MediaError) {
    guard channel.post(request) else { throw .noCamera(id) }
    // If the capture was stopped just before this request was sent, the stop had no effect, so the
    // stop is repeated.
    if isStoppable, !processor.isWanted(id) {
      _ = channel.post(PhotoRequest(action: .stop, id: id))
    }
    progressed.wait()
  }
}
