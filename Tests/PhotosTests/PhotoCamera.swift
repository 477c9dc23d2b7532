// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos
@testable import OvercrankSimulatedCameras

/// A scripted camera of 240 fps that paints the number of each frame in its image.
struct PhotoCamera {
  static let (width, height) = (128, 96)
  static let rate = FrameRate(240)
  static let base: Int64 = 5_000_000

  let driver: ScriptedDriver
  let input: DeviceInput
  let session: CaptureSession
  let output: PhotoOutput

  init(
    _ steps: [ScriptedDriver.Step], layout: SyntheticDriver.Settings.Layout = .mjpeg,
    output: PhotoOutput = PhotoOutput()
  ) throws {
    let delivered: FrameDelivery.Layout =
      layout == .mjpeg
      ? .compressed(.mjpeg)
      : .raw(try #require(LibAVPixelFormat(named: "yuyv422")), bytesPerRow: 0)
    try self.init(
      steps, delivery: delivered, mode: layout == .mjpeg ? "mjpg" : "yuyv", output: output)
  }

  init(
    _ steps: [ScriptedDriver.Step], delivery: FrameDelivery.Layout, mode: String = "yuyv",
    width: Int = Self.width, height: Int = Self.height, output: PhotoOutput = PhotoOutput()
  ) throws {
    self.output = output
    driver = ScriptedDriver(steps, bufferCount: 32)
    let device = try CaptureDevice.named("synthetic:\(width)x\(height)@240")
    input = DeviceInput(
      device: device, format: try device.format(matching: ModeRequest(parsing: "/\(mode)")),
      driver: driver,
      delivery: try FrameDelivery(layout: delivery, width: width, height: height),
      negotiatedFrameRate: Self.rate, maximumByteCount: width * height * 3)
    session = CaptureSession(input)
    try session.addOutput(output)
  }

  /// The time of a frame in microseconds.
  static func time(_ number: Int) throws -> Int64 {
    base + (try SyntheticDriver.microseconds(ofFrame: Int64(number), at: rate))
  }

  /// The image bytes of some frames.
  static func images(
    _ numbers: Range<Int>, layout: SyntheticDriver.Settings.Layout = .mjpeg
  ) throws -> [[UInt8]] {
    let pattern = TestPattern(width: width, height: height)
    var generator: any TestPatternGenerator =
      layout == .mjpeg
      ? try JPEGTestPatternGenerator(pattern: pattern) : YUYVTestPatternGenerator(pattern: pattern)
    return try numbers.map { number in
      var image = [UInt8](repeating: 0, count: generator.maximumByteCount)
      let count = try image.withUnsafeMutableBytes {
        try generator.make(number: number, isFlash: false, into: $0)
      }
      return Array(image.prefix(count))
    }
  }

  static func frames(
    _ numbers: Range<Int>, layout: SyntheticDriver.Settings.Layout = .mjpeg
  ) throws -> [ScriptedDriver.Step] {
    try zip(numbers, images(numbers, layout: layout)).map { number, image in
      .frameWithBytes(
        FrameObservation(sequence: UInt32(number), microseconds: try time(number)), image)
    }
  }

  /// Waits until the script has ended.
  func playToEnd() async throws {
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
  }

  /// The number painted in an image file.
  static func number(in file: [UInt8], codec: String = "mjpeg") throws -> Int? {
    let luma = try file.withUnsafeBytes { bytes in
      try DecodedImage(
        decoding: bytes, codec: codec, width: width, height: height,
        bytesPerPixel: codec == "png" ? 3 : 1
      ).bytes
    }
    let step = codec == "png" ? 3 : 1
    return FrameNumberPattern.read(width: width, height: height) { luma[($1 * width + $0) * step] }
  }
}

/// The photos and the movie of a photo capture, and its events as short texts.
func outcome(
  of capture: PhotoCapture
) async -> (photos: [Photo], movie: LivePhotoMovie?, story: [String]) {
  var (photos, movie, story): ([Photo], LivePhotoMovie?, [String]) = ([], nil, [])
  var isRecorded = false
  for await event in capture.events {
    #expect(event.id == capture.uniqueID)
    switch event {
    case .willBeginCapture: story.append("will begin")
    case .willCapturePhoto: story.append("will capture")
    case .didCapturePhoto: story.append("did capture")
    case .didFinishProcessingPhoto(_, .success(let photo)):
      photos.append(photo)
      story.append("photo \(photo.sequence)")
    case .didFinishProcessingPhoto(_, .failure(let error)):
      story.append("no \(error.code.rawValue)")
    // Its place among the other events varies.
    case .didFinishRecordingLivePhotoMovie: isRecorded = true
    case .didFinishLivePhotoMovie(_, .success(let made)):
      #expect(isRecorded)
      story.append("movie")
      movie = made
    case .didFinishLivePhotoMovie(_, .failure(let error)):
      story.append("no movie: \(error.code.rawValue)")
    case .didFinishCapture(_, let error):
      story.append(error.map { "ended by \($0.code.rawValue)" } ?? "did finish")
    }
  }
  return (photos, movie, story)
}

/// The events of a photo capture, as short texts.
func story(of capture: PhotoCapture) async -> [String] { await outcome(of: capture).story }
