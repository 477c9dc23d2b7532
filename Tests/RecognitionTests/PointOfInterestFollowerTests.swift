// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture
@testable import OvercrankRecognition

/// Exposure and focus that follow a face.
struct PointOfInterestFollowerTests {
  /// The objects found in frames in which a face moves to the left by half of the image.
  private func frames() async throws -> [MetadataObjectFrame] {
    let scratch = try Scratch()
    let path = scratch.file("faces.mov")
    try await FaceImages().writeMovie(path, of: "2009_004587", count: 14, step: 10)
    let camera = try CaptureDevice.named("file:\(path)?pace=max")
    let session = try CaptureSession(device: camera, format: camera.fastestFormat { _ in true })
    let output = try MetadataOutput(session: session, types: [.face])
    let frames = Mutex<[MetadataObjectFrame]>([])
    output.setMetadataObjectsHandler { frame in frames.withLock { $0.append(frame) } }
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
    while output.isBusy { await Task.yield() }
    return frames.withLock { $0 }
  }

  private func center(_ face: MetadataObject) -> Point {
    Point(
      x: face.bounds.x + face.bounds.width / 2, y: face.bounds.y + face.bounds.height / 2)
  }

  private func distance(_ a: Point?, _ b: Point) -> Double {
    guard let a else { return .infinity }
    return max(abs(a.x - b.x), abs(a.y - b.y))
  }

  @Test func `The region of interest follows the largest face or a tap`()
    async throws
  {
    let frames = try await frames()
    #expect(frames.count == 14 && frames.allSatisfy { !$0.objects.isEmpty })
    let machine = try FakeVideoSystemCalls("uvc-webcam")
    try DeviceSystem.$calls.withValue(machine) {
      let controls = try CameraControls(device: CaptureDevice.named("/dev/fakevideo0"))
      let follower = PointOfInterestFollower(controls)
      #expect(follower.isSupported && follower.pointOfInterest == nil)
      var moveCount = 0
      for frame in frames {
        if try follower.follow(frame) { moveCount += 1 }
        let face = center(try #require(frame.objects.first))
        // The driver rounds the region of interest to pixels.
        #expect(distance(follower.pointOfInterest, face) <= 0.1)
        let exposure = try controls.exposurePointOfInterest
        #expect(distance(exposure, face) < 0.11, "frame \(frame.frameIndex)")
        #expect(try controls.focusPointOfInterest == exposure)
      }
      // The face moves by half of the image. The region follows it in steps of more than a tenth.
      #expect((3...5).contains(moveCount), "\(moveCount)")

      let tapped = Point(x: 0.75, y: 0.75)
      try follower.setTappedPoint(tapped)
      for frame in frames { #expect(try !follower.follow(frame)) }
      #expect(distance(try controls.focusPointOfInterest, tapped) < 0.01)
      #expect(distance(try controls.exposurePointOfInterest, tapped) < 0.01)
      do throws(MediaError) {
        try follower.setTappedPoint(Point(x: 2, y: 0))
        Issue.record("a point outside the image was accepted")
      } catch { #expect(error.code == .controlOutOfRange) }
      #expect(follower.pointOfInterest == tapped)

      try follower.setTappedPoint(nil)
      let last = try #require(frames.last)
      #expect(try follower.follow(last))
      #expect(distance(try controls.focusPointOfInterest, center(last.objects[0])) < 0.11)
    }
  }

  @Test func `Sets the region of interest again after a session restart`() async throws {
    let first = try #require(try await frames().first)
    let second = MetadataObjectFrame(
      objects: first.objects, presentationTimeStamp: first.presentationTimeStamp, frameIndex: 0,
      streamStart: MediaTime(microseconds: 1))
    let empty = MetadataObjectFrame(
      objects: [], presentationTimeStamp: first.presentationTimeStamp, frameIndex: 0,
      streamStart: MediaTime(microseconds: 2))
    let machine = try FakeVideoSystemCalls("uvc-webcam")
    try DeviceSystem.$calls.withValue(machine) {
      let controls = try CameraControls(device: CaptureDevice.named("/dev/fakevideo0"))
      let follower = PointOfInterestFollower(controls)
      /// Resets the exposure and focus regions, as the end of a stream does.
      func restore() throws {
        try controls.setExposurePointOfInterest(.center)
        try controls.setFocusPointOfInterest(.center)
      }
      let face = center(first.objects[0])
      #expect(try follower.follow(first))
      try restore()
      #expect(try !follower.follow(first))
      #expect(try follower.follow(second))
      #expect(distance(try controls.exposurePointOfInterest, face) < 0.11)

      let tapped = Point(x: 0.75, y: 0.75)
      try follower.setTappedPoint(tapped)
      try restore()
      #expect(try !follower.follow(second))
      // In a new stream, the tapped region is set again, although no face is found.
      #expect(try follower.follow(empty))
      #expect(distance(try controls.exposurePointOfInterest, tapped) < 0.01)
      #expect(distance(try controls.focusPointOfInterest, tapped) < 0.01)
      #expect(try !follower.follow(empty))
      #expect(follower.pointOfInterest == tapped)
    }
  }

  @Test func `The exposure region is set even if the focus region fails`() async throws {
    let frame = try #require(try await frames().first)
    let calls = RefusingCalls(machine: try FakeVideoSystemCalls("uvc-webcam"))
    try DeviceSystem.$calls.withValue(calls) {
      let controls = try CameraControls(device: CaptureDevice.named("/dev/fakevideo0"))
      let follower = PointOfInterestFollower(controls)
      // Two requests succeed: one sets the exposure region, and the other turns the region on.
      calls.left.withLock { $0 = 2 }
      #expect(throws: MediaError.self) { try follower.follow(frame) }
      let face = center(frame.objects[0])
      #expect(distance(follower.pointOfInterest, face) == 0)
      #expect(distance(try controls.exposurePointOfInterest, face) < 0.11)
      #expect(try !follower.follow(frame))

      let tapped = Point(x: 0.75, y: 0.75)
      calls.left.withLock { $0 = 2 }
      #expect(throws: MediaError.self) { try follower.setTappedPoint(tapped) }
      #expect(follower.pointOfInterest == tapped)
      #expect(distance(try controls.exposurePointOfInterest, tapped) < 0.01)
      #expect(try !follower.follow(frame))

      // No request succeeds, so neither exposure nor focus is set.
      calls.left.withLock { $0 = 0 }
      #expect(throws: MediaError.self) { try follower.setTappedPoint(Point(x: 0, y: 0)) }
      #expect(follower.pointOfInterest == tapped)
    }
  }

  @Test func `Changes nothing on a camera without a region of interest`() async throws {
    let frame = try #require(try await frames().first)
    let machine = try FakeVideoSystemCalls("hfr-usb")
    try DeviceSystem.$calls.withValue(machine) {
      let controls = try CameraControls(device: CaptureDevice.named("/dev/fakevideo0"))
      let before = try controls.list().map(\.value)
      let follower = PointOfInterestFollower(controls)
      #expect(!follower.isSupported)
      #expect(try !follower.follow(frame))
      try follower.setTappedPoint(.center)
      #expect(follower.pointOfInterest == nil)
      #expect(try controls.list().map(\.value) == before)
    }
  }
}

/// A camera that refuses to set controls after a number of requests.
private final class RefusingCalls: VideoSystemCalls {
  private let machine: FakeVideoSystemCalls
  /// The number of requests that still succeed; nil if all do.
  let left = Mutex<Int?>(nil)

  init(machine: FakeVideoSystemCalls) { self.machine = machine }

  var handles: SharedHandles { machine.handles }

  func control(
    _ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    // The request is `VIDIOC_S_EXT_CTRLS`.
    let isRefused =
      request == 0xC020_5648
      && left.withLock { left in
        guard let count = left else { return false }
        left = max(0, count - 1)
        return count == 0
      }
    return isRefused ? -EIO : machine.control(descriptor, request, argument)
  }

  func open(_ path: String) -> CInt { machine.open(path) }
  func close(_ descriptor: CInt) -> CInt { machine.close(descriptor) }
  func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt {
    machine.poll(descriptor, events: events, milliseconds: milliseconds)
  }
  func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer? {
    machine.map(descriptor, length: length, offset: offset, error: &error)
  }
  func unmap(_ memory: UnsafeMutableRawBufferPointer) { machine.unmap(memory) }
  func nanoseconds() -> Int64 { machine.nanoseconds() }
  func nodes() -> [String] { machine.nodes() }
}
