// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos

/// Photos in a camera mode that is larger than the mode of the stream.
struct StillModeTests {
  private let scratch: Scratch
  private let input: DeviceInput
  private let session: CaptureSession
  private let output = PhotoOutput()

  init() throws {
    scratch = try Scratch()
    let camera = try CaptureDevice.named("synthetic?scene=pattern")
    input = try DeviceInput(
      device: camera, format: try camera.format(matching: ModeRequest(parsing: "640x480@120/mjpg")))
    session = CaptureSession(input)
    try session.addOutput(output)
  }

  private func settings(_ name: String) -> PhotoSettings {
    var settings = PhotoSettings(destination: .file(scratch.file(name)))
    settings.isHighResolutionPhotoEnabled = true
    return settings
  }

  @Test func `After a photo in the largest mode the old mode is restored`()
    async throws
  {
    let largest = try input.device.formats().map { $0.width * $0.height }.max()
    let rate = input.requestedFrameRate
    try await session.startRunning()
    let capture = try output.capturePhoto(with: settings("a.jpg"))
    let events = await story(of: capture)
    #expect(events.count == 5 && events.last == "did finish", "\(events)")
    // The mode of the stream is restored when the capture has ended.
    #expect(input.format.id.hasPrefix("640x480@120") && input.requestedFrameRate == rate)
    let resolved = capture.resolvedSettings
    #expect(resolved.width * resolved.height == largest)
    let bytes = try bytes(of: scratch.file("a.jpg"))
    _ = try bytes.withUnsafeBytes {
      try DecodedImage(
        decoding: $0, codec: "mjpeg", width: resolved.width, height: resolved.height,
        bytesPerPixel: 1)
    }
    // After the photo, the camera's stream continues in its old mode.
    let small = try await output.photos(with: PhotoSettings())
    #expect(small.map(\.width) == [640])
    await session.stopRunning()
  }

  @Test func `A photo in a larger mode splits a movie and reports the gap`() async throws {
    let settings = settings("a.jpg")
    let movie = MovieFileOutput(settings: RecordingSettings(path: scratch.file("1.mov")))
    try await session.addOutput(movie)
    try await session.startRunning()
    var segments = SegmentSettings { [scratch] in scratch.file("\($0).mov") }
    segments.reconnectTimeout = MediaTime(seconds: 600)
    let requests = Requests()
    requests.join(output)
    let count = Atomic<Int>(0)
    let report = try await movie.record(in: segments) { event in
      switch event {
      case .progress(let state):
        if state.stored > 0, requests.captures.isEmpty { requests.request(settings) }
        if count.load(ordering: .relaxed) == 2 { movie.stop(.stopped) }
      case .didStart: count.wrappingAdd(1, ordering: .relaxed)
      default: break
      }
    }
    let events = await story(of: try #require(requests.captures.first))
    #expect(events.count == 5 && events.last == "did finish", "\(events)")
    await session.stopRunning()
    #expect(report.files.map(\.stoppedBy) == [.reconfigured, .stopped])
    #expect(report.take.ledger.isBalanced && report.files.allSatisfy(\.ledger.isBalanced))
    let stored = report.files.map(\.ledger.stored)
    #expect(report.take.ledger.stored == stored[0] + stored[1])
    // The frames between the files count only in the ledger of the whole take.
    #expect(report.take.gaps.contains { $0.cause == .lostDevice })
    #expect(report.take.ledger.lostDevice > report.files.map(\.ledger.lostDevice).reduce(0, +))
  }

  @Test func `A photo in a larger mode ends an unsegmented recording`() async throws {
    let movie = MovieFileOutput(settings: RecordingSettings(path: scratch.file("a.mov")))
    try await session.addOutput(movie)
    try await session.startRunning()
    let requests = Requests()
    requests.join(output)
    let settings = settings("a.jpg")
    let report = try movie.record { state in
      if state.stored > 0, requests.captures.isEmpty { requests.request(settings) }
    }
    #expect(await story(of: try #require(requests.captures.first)).last == "did finish")
    #expect(report.stoppedBy == .reconfigured && report.isPlayable && report.ledger.isBalanced)
    await session.stopRunning()
  }

  @Test func `Refuses a second photo during a photo in a larger mode`() async throws {
    let requests = Requests()
    requests.join(output)
    let other = settings("b.jpg")
    var settings = PhotoSettings()
    settings.isHighResolutionPhotoEnabled = true
    // This closure is called while the photo is in progress.
    settings.destination = .files { [scratch] _ in
      requests.request(other)
      requests.request(PhotoSettings())
      return scratch.file("a.jpg")
    }
    try await session.startRunning()
    #expect(await story(of: try output.capturePhoto(with: settings)).last == "did finish")
    #expect(requests.captures.isEmpty && requests.errors.map(\.code) == [.notReady, .notReady])
    await session.stopRunning()
  }

  @Test func `Stopping during a photo in a larger mode restores the mode`() async throws {
    try await session.startRunning()
    let capture = try output.capturePhoto(with: settings("a.jpg"))
    await session.stopRunning()
    #expect(await story(of: capture).first == "will begin")
    #expect(input.format.id.hasPrefix("640x480@120"))
    // The next start of the session uses the smaller mode again, and photos can be taken.
    try await session.startRunning()
    #expect(try await output.photos(with: PhotoSettings()).map(\.width) == [640])
    await session.stopRunning()
  }

  @Test func `A photo does not stop the stream if no larger mode exists`()
    async throws
  {
    let requests = Requests()
    var live = settings("b.jpg")
    live.livePhoto = LivePhotoSettings()
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<6)
        + [requests.step(settings("a.jpg"), at: try PhotoCamera.time(5)), requests.step(live)]
        + PhotoCamera.frames(6..<8))
    requests.join(camera.output)
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    #expect(
      await story(of: capture)
        == ["will begin", "will capture", "did capture", "photo 5", "did finish"])
    #expect(requests.errors.map(\.code) == [.badConfiguration])
  }
}
