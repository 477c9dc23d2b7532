// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos
@testable import OvercrankSimulatedCameras

struct PhotoOutputTests {
  @Test(.timeLimit(.minutes(30)))
  func `A photo output and its session are released when unused`() async throws {
    weak var output: PhotoOutput?
    weak var input: DeviceInput?
    do {
      let camera = try PhotoCamera(try PhotoCamera.frames(0..<8))
      (output, input) = (camera.output, camera.input)
      try await camera.session.startRunning()
      await camera.session.stopRunning()
    }
    while output != nil || input != nil { await Task.yield() }
  }

  @Test(.timeLimit(.minutes(30)))
  func `Photos of an H.264 camera show the frames of their numbers`() throws {
    let scratch = try Scratch()
    var recording = RecordingSettings(path: scratch.file("clip.mov"))
    recording.video = .codec(.h264)
    recording.limit = CaptureLimit(frameCount: 240)
    let synthetic = try CaptureDevice.named("synthetic:128x96@240?pace=max")
    _ = try MovieFileOutput(session: CaptureSession(synthetic), settings: recording).record()
    let camera = try CaptureDevice.named("file:\(recording.path)?pace=max")
    let session = try CaptureSession(device: camera, format: camera.fastestFormat())
    #expect(session.inputs.compactMap { $0 as? DeviceInput }.first?.format.fourcc == .h264)
    let output = PhotoOutput()
    try session.addOutput(output)
    #expect(output.availablePhotoFormats.contains(.jpeg))
    try session.startRunning()
    defer { session.stopRunning() }
    var settings = PhotoSettings(format: .jpeg)
    settings.photoCount = 5
    let photos = try output.photos(with: settings)
    #expect(photos.count == 5)
    for photo in photos {
      let data = try #require(photo.data)
      #expect(try PhotoCamera.number(in: data) == Int(photo.sequence))
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func `Taking photos at random times loses no frame of a movie`()
    async throws
  {
    let (frameCount, photoCount) = (3_000, 1_000)
    var random = SeededGenerator(seed: 7)
    let scratch = try Scratch()
    let requests = Requests()
    // The output limits the number of pending captures to 48, so further requests wait until a
    // capture has finished.
    let credits = DispatchSemaphore(value: 0)
    for _ in 0..<48 { credits.signal() }
    let frames = try PhotoCamera.frames(0..<frameCount)
    let instants = (0..<photoCount).map { _ in
      Int.random(in: 0..<(frameCount - 1) * 4, using: &random)
    }.sorted()
    var (steps, expected): ([ScriptedDriver.Step], [Int]) = ([], [])
    var next = 0
    for (number, frame) in frames.enumerated() {
      steps.append(frame)
      // The photo requests come at multiples of a quarter of a frame period.
      while next < photoCount, instants[next] / 4 == number {
        let time = try PhotoCamera.time(number) + Int64(instants[next] % 4) * 1_041
        steps += [.action { credits.wait() }, requests.step(at: time)]
        expected.append(number)
        next += 1
      }
    }
    let camera = try PhotoCamera(steps)
    requests.join(camera.output)
    let data = VideoDataOutput()
    try await camera.session.addOutput(data)
    data.setSampleBufferHandler { _ in }
    let movie = MovieFileOutput(settings: RecordingSettings(path: scratch.file("take.mov")))
    try await camera.session.addOutput(movie)
    let events = camera.output.events
    let counter = Task {
      for await event in events { if case .didFinishCapture = event { credits.signal() } }
    }
    let report = try await movie.record()
    #expect(report.ledger.stored == Int64(frameCount) && report.ledger.dropped == 0)
    #expect(data.ledger.isBalanced && data.ledger.offered == Int64(frameCount))
    #expect(requests.errors.isEmpty)
    let captures = requests.captures
    try #require(captures.count == photoCount)
    #expect(Set(captures.map(\.uniqueID)).count == photoCount)
    for (capture, number) in zip(captures, expected) {
      let (photos, _, story) = await outcome(of: capture)
      #expect(
        story == ["will begin", "will capture", "did capture", "photo \(number)", "did finish"])
      let photo = try #require(photos.first)
      #expect(photo.sequence == UInt32(number) && photo.frameIndex == Int64(number))
      #expect(try PhotoCamera.number(in: photo.data ?? []) == number)
      #expect((-4_167_000...0).contains(photo.shutterLag.wholeNanoseconds))
    }
    counter.cancel()
    while camera.input.pool.heldCount > 0 { await Task.yield() }
    #expect(camera.output.captureReadiness == .sessionNotRunning)
  }

  @Test func `A photo burst stores every frame after the request unchanged`()
    async throws
  {
    let requests = Requests()
    var settings = PhotoSettings()
    settings.photoCount = 240
    let time = try PhotoCamera.time(9) + 2_000
    let frames = try PhotoCamera.frames(0..<300)
    let camera = try PhotoCamera(
      frames.prefix(10) + [requests.step(settings, at: time)] + frames.dropFirst(10))
    requests.join(camera.output)
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    #expect(capture.resolvedSettings.keepsCompressedData)
    var photos: [Photo] = []
    for await event in capture.events {
      if case .didFinishProcessingPhoto(_, let result) = event { photos.append(try result.get()) }
    }
    #expect(photos.map(\.sequence) == (9..<249).map { UInt32($0) })
    #expect(photos.map(\.index) == Array(0..<240))
    let images = try PhotoCamera.images(0..<300)
    for photo in photos {
      let image = images[Int(photo.sequence)]
      let original = try #require(image.withUnsafeBytes { JPEGFile(parsing: $0) })
      let kept = try #require(photo.data?.withUnsafeBytes { JPEGFile(parsing: $0) })
      #expect(original.scanData.elementsEqual(kept.scanData))
    }
  }

  @Test func `A time lapse takes one frame per interval until stopped`()
    async throws
  {
    let requests = Requests()
    var settings = PhotoSettings()
    settings.photoCount = .max
    settings.interval = MediaTime(1, over: 20)
    let frames = try PhotoCamera.frames(0..<100)
    let time = try PhotoCamera.time(2)
    let camera = try PhotoCamera(
      frames.prefix(3) + [requests.step(settings, at: time)] + frames[3..<70] + [requests.stop]
        + frames[70...])
    requests.join(camera.output)
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    // The interval of 50 ms is twelve frame periods.
    #expect(
      await story(of: capture) == ["will begin", "will capture"]
        + [2, 14, 26, 38, 50, 62].map { "photo \($0)" } + ["did capture", "did finish"])
  }

  @Test func `A photo has a preview image and a prioritized quality`() async throws {
    let requests = Requests()
    let frames = try PhotoCamera.frames(0..<40, layout: .yuyv)
    var steps = Array(frames.prefix(4))
    for (place, priority) in QualityPrioritization.allCases.enumerated() {
      var settings = PhotoSettings()
      settings.photoQualityPrioritization = priority
      settings.previewPhotoFormat = VideoDataSettings(pixelFormat: .gray, width: 64)
      steps += [requests.step(PhotoSettings(from: settings))] + frames[(4 + place)..<(5 + place)]
    }
    let camera = try PhotoCamera(steps + frames[7...], layout: .yuyv)
    requests.join(camera.output)
    try await camera.playToEnd()
    #expect(requests.captures.count == 3)
    var sizes: [Int] = []
    for capture in requests.captures {
      for await case .didFinishProcessingPhoto(_, let result) in capture.events {
        let photo = try result.get()
        sizes.append(photo.data?.count ?? 0)
        let preview = try #require(photo.previewPixelBuffer)
        #expect(preview.width == 64 && preview.height == 48 && preview.format == .gray)
        #expect(try PhotoCamera.number(in: photo.data ?? []) == Int(photo.sequence))
      }
    }
    #expect(sizes.count == 3 && sizes == sizes.sorted() && Set(sizes).count == 3)
    var odd = PhotoSettings()
    odd.previewPhotoFormat = VideoDataSettings(width: 0)
    let error = #expect(throws: MediaError.self) { try odd.check() }
    #expect(error?.code == .notConvertible)
  }

  @Test func `A photo without zero shutter lag is the next captured frame`()
    async throws
  {
    let requests = Requests()
    let frames = try PhotoCamera.frames(0..<20)
    let time = try PhotoCamera.time(9) + 4_166
    let camera = try PhotoCamera(
      frames.prefix(10) + [requests.step(at: time)] + frames.dropFirst(10))
    requests.join(camera.output)
    camera.output.isZeroShutterLagEnabled = false
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    #expect(await story(of: capture).contains("photo 10"))
  }

  @Test func `A photo burst skips lost and damaged frames`() async throws {
    let requests = Requests()
    var settings = PhotoSettings()
    settings.photoCount = 3
    var frames = try PhotoCamera.frames(0..<20)
    frames[10] = .frameWithBytes(
      .init(sequence: 10, microseconds: try PhotoCamera.time(10)), [0xFF, 0xD8, 0xFF])
    frames.remove(at: 12)
    let camera = try PhotoCamera(
      frames.prefix(10)
        + [requests.step(settings, at: try PhotoCamera.time(9) + 1)] + frames.dropFirst(10))
    requests.join(camera.output)
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    #expect(
      await story(of: capture) == [
        "will begin", "will capture", "photo 9", "photo 11", "did capture", "photo 13",
        "did finish",
      ])
  }

  @Test func `A photo request after the last frame fails with an error`() async throws {
    let requests = Requests()
    let last = try PhotoCamera.time(9)
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<10)
        + [requests.step(at: last + 4_000), requests.step(at: last + 400_000)])
    requests.join(camera.output)
    try await camera.playToEnd()
    let captures = requests.captures
    try #require(captures.count == 2)
    #expect(
      await story(of: captures[0]) == [
        "will begin", "will capture", "did capture", "photo 9", "did finish",
      ])
    #expect(await story(of: captures[1]) == ["will begin", "ended by not_connected"])
    #expect(camera.input.pool.heldCount == 0)
  }

  @Test func `Unplugging the camera ends a burst without partial files`()
    async throws
  {
    let (requests, scratch) = (Requests(), try Scratch())
    let error = MediaError(.deviceLost, "the camera is gone", recovery: "connect it")
    var settings = PhotoSettings()
    settings.photoCount = 20
    settings.destination = .files { scratch.file("\($0.sequence).jpg") }
    let frames = try PhotoCamera.frames(0..<15)
    let camera = try PhotoCamera(
      frames.prefix(10) + [requests.step(settings, at: try PhotoCamera.time(9))]
        + frames.dropFirst(10) + [.failure(error)])
    requests.join(camera.output)
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    let names = (9..<15).map { "\($0)" }
    #expect(
      await story(of: capture) == ["will begin", "will capture"] + names.map { "photo \($0)" }
        + ["ended by device_lost"])
    #expect(try scratch.names() == names.map { "\($0).jpg" }.sorted())
    for name in names {
      #expect(try PhotoCamera.number(in: bytes(of: scratch.file("\(name).jpg"))) == Int(name))
    }
    #expect(camera.input.pool.heldCount == 0)
  }

  @Test(.enabled(if: SmallDisk.canBeMade))
  func `Taking photos on a full disk fails and leaves no file`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    #expect(SmallDisk.mount(at: scratch.path))
    defer { SmallDisk.unmount(scratch.path) }
    for size in (0...9).map({ (2 << 20) >> $0 }) {
      _ = try? scratch.write([UInt8](repeating: 7, count: size), as: "filler-\(size)")
    }
    var settings = PhotoSettings()
    settings.photoCount = 2
    settings.destination = .files { scratch.file("\($0.sequence).jpg") }
    let frames = try PhotoCamera.frames(0..<15)
    let camera = try PhotoCamera(
      frames.prefix(10)
        + [requests.step(settings, at: try PhotoCamera.time(9)), requests.step()]
        + frames.dropFirst(10))
    requests.join(camera.output)
    try await camera.playToEnd()
    let captures = requests.captures
    #expect(
      await story(of: captures[0]) == [
        "will begin", "will capture", "no disk_full", "did capture", "no disk_full",
        "ended by disk_full",
      ])
    // A photo that is kept in memory needs no disk.
    #expect(await story(of: captures[1]).last == "did finish")
    #expect(try scratch.names().filter { !$0.hasPrefix("filler") } == [])
  }

  @Test func `Refuses invalid photo settings and settings used twice`() async throws {
    let (requests, used) = (Requests(), PhotoSettings())
    var wrong: [PhotoSettings] = (0..<4).map { _ in PhotoSettings() }
    wrong[0].quality = 101
    wrong[1].photoCount = 0
    wrong[2].interval = .zero
    wrong[3].photoCount = 2
    wrong[3].destination = .file("one.jpg")
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<2) + [requests.step(used), requests.step(used)]
        + wrong.map { requests.step($0) } + PhotoCamera.frames(2..<4))
    requests.join(camera.output)
    #expect(camera.output.captureReadiness == .sessionNotRunning)
    #expect(throws: MediaError.self) { try camera.output.capturePhoto(with: PhotoSettings()) }
    try await camera.playToEnd()
    #expect(requests.captures.count == 1)
    #expect(requests.errors.map(\.code) == Array(repeating: .badConfiguration, count: 5))
    #expect(PhotoSettings(from: used).uniqueID > used.uniqueID)
  }

  @Test func `Refuses more photo captures than may be pending`() async throws {
    let requests = Requests()
    let time = try PhotoCamera.time(30)
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<2) + (0..<65).map { _ in requests.step(at: time) }
        + PhotoCamera.frames(2..<40))
    requests.join(camera.output)
    let changes = camera.output.captureReadinessChanges
    try await camera.playToEnd()
    #expect(requests.captures.count == 64)
    #expect(requests.errors.map(\.code) == [.notReady])
    for capture in requests.captures {
      #expect(await story(of: capture).contains("photo 30"))
    }
    for await readiness in changes where readiness == .sessionNotRunning { break }
  }

  @Test func `The blocking and async photo methods return the photos`() async throws {
    let device = try CaptureDevice.named("synthetic:128x96@240?pace=max&scene=pattern")
    let session = try CaptureSession(device: device, format: device.fastestFormat())
    let output = PhotoOutput()
    try await session.addOutput(output)
    #expect(output.availablePhotoFormats == [.jpeg, .png])
    try await session.startRunning()
    var burst = PhotoSettings(format: .png)
    burst.photoCount = 3
    let photos = try await output.photos(with: burst)
    // The camera waits while no photo is requested, so the frames are consecutive.
    #expect(photos.map(\.frameIndex) == [0, 1, 2])
    #expect(
      try photos.map { try PhotoCamera.number(in: $0.data ?? [], codec: "png") } == [0, 1, 2])
    var seen: [Int64] = []
    func takeOne() throws -> [Photo] {
      try output.photos(with: PhotoSettings()) { seen.append($0.frameIndex) }
    }
    let last = try takeOne()
    #expect(last.map(\.frameIndex) == seen && seen.count == 1)
    let endless = Task { () -> Int in
      var settings = PhotoSettings()
      settings.photoCount = .max
      return try await output.photos(with: settings).count
    }
    for await event in output.events { if case .didFinishProcessingPhoto = event { break } }
    endless.cancel()
    #expect(try await endless.value > 0)
    await session.stopRunning()
  }
}
