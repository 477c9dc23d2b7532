// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos

/// Live Photos: photos with a short movie that begins before the photo and ends after it.
struct LivePhotoTests {
  /// A camera with Live Photos enabled, whose frames begin when the ring buffer accepts them.
  ///
  /// A request after a frame is served with the next frame. Later frames wait until the movie has
  /// begun.
  static func camera(
    _ requests: Requests, frames: Range<Int>, after steps: [Int: ScriptedDriver.Step],
    _ output: PhotoOutput = PhotoOutput()
  ) throws -> PhotoCamera {
    // Each script action is one iteration of the capture thread, so that the thread can add new
    // sinks.
    func wait(until isDone: @escaping @Sendable (LivePhotoRecorder) -> Bool)
      -> [ScriptedDriver.Step]
    {
      (0..<200_000).map { _ in
        .action { if output.processor.livePhotos.map(isDone) != true { usleep(500) } }
      }
    }
    var (script, count) = (wait { if case .filling = $0.ring { true } else { false } }, 0)
    for (number, frame) in try zip(frames, PhotoCamera.frames(frames)) {
      script.append(frame)
      if let step = steps[number] { script.append(step) }
      if steps[number - 1] != nil {
        count += 1
        let started = count
        script += wait { $0.startedCount >= started }
      }
    }
    let camera = try PhotoCamera(script, output: output)
    requests.join(output)
    try output.setLivePhotoCaptureEnabled(true)
    return camera
  }

  private func settings(_ path: String) -> PhotoSettings {
    var settings = PhotoSettings(destination: .file(path))
    settings.livePhoto = LivePhotoSettings()
    return settings
  }

  @Test func `A Live Photo movie starts before the photo and ends after it`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    let (path, moviePath) = (scratch.file("a.jpg"), scratch.file("a.mov"))
    let camera = try Self.camera(
      requests, frames: 0..<1_000,
      after: [480: requests.step(settings(path), at: try PhotoCamera.time(480))])
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    #expect(capture.resolvedSettings.livePhotoMovieWidth == PhotoCamera.width)
    let (_, made, story) = await outcome(of: capture)
    #expect(
      story == ["will begin", "will capture", "did capture", "photo 480", "movie", "did finish"])
    let movie = try #require(made)
    #expect(movie.path == moviePath && movie.isEmbedded)
    #expect(movie.duration == MediaTime(seconds: 3))
    let asset = try Asset(path: moviePath)
    let numbers = try paintedNumbers(asset)
    #expect(numbers == (120..<840).map { $0 })
    let times = asset.frameTimingRows().map(\.time)
    #expect(movie.photoDisplayTime == times[360])
    // The timed metadata mark is at the frame of the photo.
    let marks = asset.timedMetadata()
    #expect(marks.map(\.key) == [LivePhoto.stillImageTimeKey])
    #expect(marks.first?.frameIndex == 360 && marks.first?.time == movie.photoDisplayTime)
    #expect(asset.metadata[LivePhoto.contentIdentifierKey] == movie.contentIdentifier)

    let pair = try #require(LivePhoto(path: path))
    #expect(pair.photoPath == path && pair.movie == .file(moviePath))
    #expect(pair.contentIdentifier == movie.contentIdentifier)
    #expect(pair.photoDisplayTime == movie.photoDisplayTime)
    #expect(LivePhoto(path: moviePath) == pair)

    // The photo can still be decoded, and also contains the movie.
    let photo = try bytes(of: path)
    let end = photo.count - (try bytes(of: moviePath)).count
    #expect(try PhotoCamera.number(in: Array(photo[..<end])) == 480)
    try #require(unlink(moviePath) == 0)
    let motion = try #require(LivePhoto(path: path))
    #expect(motion.movie == .embedded(byteCount: Int64(photo.count - end)))
    #expect(motion.photoDisplayTime == movie.photoDisplayTime)
    let opened = try motion.openMovie()
    #expect(try paintedNumbers(Asset(path: opened.path)) == numbers)
  }

  @Test func `The movie event of a Live Photo comes after the photo event`()
    async throws
  {
    let (requests, scratch) = (Requests(), try Scratch())
    let recorder = Mutex<LivePhotoRecorder?>(nil)
    let startedCounts = Mutex<[Int]>([])
    // This photo encoder needs longer than the movie of the Live Photo lasts.
    let encoder = ScriptedEncoder { image in
      guard let recorder = recorder.withLock({ $0 }) else { return [] }
      startedCounts.withLock { $0.append(recorder.startedCount) }
      while recorder.count > 0 { usleep(500) }
      return [1, 2, 3]
    }
    var settings = PhotoSettings(format: .heic, destination: .file(scratch.file("a.heic")))
    settings.livePhoto = LivePhotoSettings()
    let camera = try Self.camera(
      requests, frames: 0..<1_000,
      after: [480: requests.step(settings, at: try PhotoCamera.time(480))],
      PhotoOutput(encoders: [encoder]))
    recorder.withLock { $0 = camera.output.processor.livePhotos }
    try await camera.playToEnd()
    let (_, made, story) = try await outcome(of: #require(requests.captures.first))
    #expect(startedCounts.withLock { $0 } == [1])
    #expect(
      story == ["will begin", "will capture", "did capture", "photo 480", "movie", "did finish"])
    let numbers = try paintedNumbers(Asset(path: try #require(made).path))
    #expect(numbers == (120..<840).map { $0 })
    #expect(try bytes(of: scratch.file("a.heic")) == [1, 2, 3])
  }

  @Test func `A Live Photo that cannot be stored leaves no movie`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    let encoder = ScriptedEncoder { _ in [] }
    var settings = PhotoSettings(
      format: .heic, destination: .file(scratch.file("missing/a.heic")))
    settings.livePhoto = LivePhotoSettings(moviePath: scratch.file("a.mov"))
    let camera = try Self.camera(
      requests, frames: 0..<600,
      after: [40: requests.step(settings, at: try PhotoCamera.time(40))],
      PhotoOutput(encoders: [encoder]))
    try await camera.playToEnd()
    let events = await story(of: try #require(requests.captures.first))
    #expect(
      events == [
        "will begin", "will capture", "did capture", "no cannot_create", "no movie: cancelled",
        "ended by cannot_create",
      ])
    #expect(try scratch.names().isEmpty)
  }

  @Test(.enabled(if: ExifTool.isInstalled, ExifTool.whyNot))
  func `ExifTool validates a Live Photo and reads its identifier`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    let (path, moviePath) = (scratch.file("a.jpg"), scratch.file("a.mov"))
    let camera = try Self.camera(
      requests, frames: 0..<60,
      after: [30: requests.step(settings(path), at: try PhotoCamera.time(30))])
    try await camera.playToEnd()
    let (_, made, _) = try await outcome(of: #require(requests.captures.first))
    let movie = try #require(made)
    for file in [path, moviePath] {
      let validation = try await run("exiftool", ["-validate", "-warning", "-a", "-s3", file])
      #expect(validation.output == "OK\n", "\(file): \(validation.output)\(validation.errors)")
    }
    let found = try await run(
      "exiftool",
      ["-s3", "-MediaGroupUUID", "-ContentIdentifier", path, moviePath])
    let lines = found.output.split(separator: "\n").filter { !$0.hasPrefix("=") }
    #expect(lines.prefix(2).allSatisfy { $0 == movie.contentIdentifier }, "\(found.output)")
    let motion = try await run("exiftool", ["-s3", "-XMP-GCamera:MotionPhoto", path])
    #expect(motion.output == "1\n")
    // FFmpeg finds one packet, at the time of the photo.
    let packets = try await FFmpeg.probe(moviePath, "packet=pts_time", stream: "d:0")
    let identifier = try await FFmpeg.probe(
      moviePath, "format_tags=\(LivePhoto.contentIdentifierKey)")
    #expect(identifier == [movie.contentIdentifier])
    let expected = movie.photoDisplayTime.wholeMicroseconds
    #expect(
      packets.compactMap(Double.init).map { Int64(($0 * 1_000_000).rounded()) } == [expected])
  }

  @Test func `A Live Photo refuses a movie with another content identifier`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    var steps: [Int: ScriptedDriver.Step] = [:]
    for (number, name) in [(20, "a"), (30, "b")] {
      var settings = settings(scratch.file("\(name).jpg"))
      settings.livePhoto?.embedsMovie = false
      steps[number] = requests.step(settings, at: try PhotoCamera.time(number))
    }
    let camera = try Self.camera(requests, frames: 0..<60, after: steps)
    try await camera.playToEnd()
    for capture in requests.captures { #expect(await outcome(of: capture).movie != nil) }
    #expect(LivePhoto(path: scratch.file("a.jpg"))?.photoPath == scratch.file("a.jpg"))
    // The movies of two photos swap their names.
    try #require(rename(scratch.file("a.mov"), scratch.file("c.mov")) == 0)
    try #require(rename(scratch.file("b.mov"), scratch.file("a.mov")) == 0)
    try #require(rename(scratch.file("c.mov"), scratch.file("b.mov")) == 0)
    #expect(LivePhoto(path: scratch.file("a.jpg")) == nil)
    let lonely = try #require(LivePhoto(path: scratch.file("a.mov")))
    #expect(lonely.photoPath == nil && lonely.photoDisplayTime != nil)
  }

  @Test func `Overlapping Live Photos each have their own movie`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    let counts = Mutex<[Int]>([])
    var steps: [Int: ScriptedDriver.Step] = [:]
    let output = Mutex<PhotoOutput?>(nil)
    for number in [40, 60, 80] {
      let request = requests.step(
        settings(scratch.file("\(number).jpg")), at: try PhotoCamera.time(number))
      steps[number] = .action {
        let count = output.withLock { $0 }?.livePhotosInProgressCount
        counts.withLock { $0.append(count ?? 0) }
        if case .action(let body) = request { body() }
      }
    }
    let camera = try Self.camera(requests, frames: 0..<600, after: steps)
    output.withLock { $0 = camera.output }
    try await camera.playToEnd()
    #expect(counts.withLock { $0 } == [0, 1, 2])
    for (capture, number) in zip(requests.captures, [40, 60, 80]) {
      let (_, made, story) = await outcome(of: capture)
      #expect(story.suffix(3) == ["photo \(number)", "movie", "did finish"])
      let movie = try #require(made)
      let numbers = try paintedNumbers(Asset(path: movie.path))
      #expect(numbers == (0..<(number + 360)).map { $0 })
    }
    #expect(camera.output.livePhotosInProgressCount == 0)
  }

  @Test(.enabled(if: SmallDisk.canBeMade))
  func `A full disk fails the Live Photo movie but keeps the photo`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    #expect(SmallDisk.mount(at: scratch.path))
    defer { SmallDisk.unmount(scratch.path) }
    let path = scratch.file("a.jpg")
    let camera = try Self.camera(
      requests, frames: 0..<900,
      after: [400: requests.step(settings(path), at: try PhotoCamera.time(400))])
    try await camera.playToEnd()
    let (_, _, story) = try await outcome(of: #require(requests.captures.first))
    #expect(
      story == [
        "will begin", "will capture", "did capture", "photo 400", "no movie: disk_full",
        "ended by disk_full",
      ])
    #expect(try PhotoCamera.number(in: bytes(of: path)) == 400)
  }

  @Test func `A Live Photo is taken even if its movie cannot be recorded`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    let path = scratch.file("a.jpg")
    var settings = settings(path)
    settings.livePhoto?.waitsForPreRoll = true
    let output = PhotoOutput()
    let waits = (0..<200_000).map { _ in
      ScriptedDriver.Step.action {
        if case .failed = output.processor.livePhotos?.ring { return }
        usleep(500)
      }
    }
    let camera = try PhotoCamera(
      PhotoCamera.frames(0..<3) + waits + [requests.step(settings)] + PhotoCamera.frames(3..<9),
      output: output)
    requests.join(output)
    try output.setLivePhotoCaptureEnabled(true)
    // The movie recorder cannot record without a session.
    camera.session.removeOutput(try #require(output.processor.livePhotos).output)
    try await camera.playToEnd()
    let (_, _, story) = try await outcome(of: #require(requests.captures.first))
    #expect(story.first == "will begin" && story.contains { $0.hasPrefix("photo ") }, "\(story)")
    #expect(story.suffix(2) == ["no movie: not_connected", "ended by not_connected"], "\(story)")
    #expect(try scratch.names() == ["a.jpg"])
  }

  @Test func `Refuses Live Photos in bursts or without file or if disabled`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    var memory = PhotoSettings()
    memory.livePhoto = LivePhotoSettings()
    var burst = settings(scratch.file("b.jpg"))
    burst.photoCount = 2
    burst.destination = .files { scratch.file("\($0.index).jpg") }
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<3)
        + [
          requests.step(memory), requests.step(burst),
          requests.step(settings(scratch.file("c.jpg"))),
        ] + PhotoCamera.frames(3..<5))
    requests.join(camera.output)
    try await camera.playToEnd()
    #expect(requests.errors.map(\.code) == Array(repeating: .badConfiguration, count: 3))
    let error = #expect(throws: MediaError.self) {
      try PhotoOutput().setLivePhotoCaptureEnabled(true)
    }
    #expect(error?.code == .notConnected)
    #expect(try scratch.names().isEmpty)
  }

  @Test func `Opening a named pipe as a Live Photo does not block`() throws {
    let scratch = try Scratch()
    let path = scratch.file("photo.jpg")
    #expect(mkfifo(path, 0o600) == 0)
    #expect(LivePhoto(path: path) == nil && LivePhoto(path: scratch.path) == nil)
  }
}

/// A photo encoder whose result comes from a closure.
private struct ScriptedEncoder: PhotoEncoder {
  let body: @Sendable (PhotoImage) -> [UInt8]

  var format: PhotoFormat { .heic }

  func encode(_ image: PhotoImage) -> [UInt8] { body(image) }
}
