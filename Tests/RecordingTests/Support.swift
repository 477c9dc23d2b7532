// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// A scripted camera without a clock.
struct ScriptedCamera {
  var width = 128
  var height = 96
  var rate: FrameRate
  var layout = SyntheticDriver.Settings.Layout.mjpeg
  /// The time of frame 0 in microseconds.
  var base: Int64 = 5_000_000
  var hasAudio = false

  init(_ framesPerSecond: Int64) throws { rate = FrameRate(Int(framesPerSecond)) }

  /// The number and time that the driver reports for a frame that arrives on time.
  func observation(_ number: Int64) throws -> FrameObservation {
    FrameObservation(
      sequence: UInt32(truncatingIfNeeded: number),
      microseconds: base + (try SyntheticDriver.microseconds(ofFrame: number, at: rate)))
  }

  /// The image bytes of some frames, as the synthetic camera draws them.
  func images(_ numbers: some Sequence<Int>) throws -> [[UInt8]] {
    let pattern = TestPattern(width: width, height: height)
    var generator: any TestPatternGenerator =
      switch layout {
      case .gray: GrayTestPatternGenerator(pattern: pattern)
      case .yuyv: YUYVTestPatternGenerator(pattern: pattern)
      case .mjpeg: try JPEGTestPatternGenerator(pattern: pattern)
      }
    return try numbers.map { number in
      var image = [UInt8](repeating: 0, count: generator.maximumByteCount)
      let count = try image.withUnsafeMutableBytes {
        try generator.make(number: number, isFlash: false, into: $0)
      }
      return Array(image.prefix(count))
    }
  }

  /// Script steps for consecutive frames, each with its number painted.
  func frames(_ numbers: Range<Int>) throws -> [ScriptedDriver.Step] {
    try zip(numbers, images(numbers)).map { .frameWithBytes(try observation(Int64($0)), $1) }
  }

  /// A session whose camera plays a script.
  func session(_ driver: ScriptedDriver) throws -> CaptureSession {
    let name = layout == .mjpeg ? "mjpg" : layout == .yuyv ? "yuyv" : "grey"
    let device = try CaptureDevice.named(
      "synthetic:\(width)x\(height)@\(rate.numerator)")
    let delivered: FrameDelivery.Layout =
      switch layout {
      case .mjpeg: .compressed(.mjpeg)
      case .yuyv: .raw(LibAVPixelFormat(named: "yuyv422") ?? .gray8, bytesPerRow: 0)
      case .gray: .raw(.gray8, bytesPerRow: 0)
      }
    let base = base
    return CaptureSession(
      DeviceInput(
        device: device, format: try device.format(matching: ModeRequest(parsing: "/\(name)")),
        driver: driver,
        delivery: try FrameDelivery(layout: delivered, width: width, height: height),
        negotiatedFrameRate: rate, maximumByteCount: width * height * 3,
        audio: hasAudio ? (SyntheticAudio(), { base }, { base }, nil) : nil))
  }

  /// A session whose camera plays a script of frames from ``streamFrames(_:in:)``.
  func streamSession(_ driver: ScriptedDriver) throws -> CaptureSession {
    let device = try CaptureDevice.named("synthetic:\(width)x\(height)@\(rate.numerator)")
    return CaptureSession(
      DeviceInput(
        device: device, format: try device.fastestFormat(), driver: driver,
        delivery: try FrameDelivery(layout: .compressed(.h264), width: width, height: height),
        negotiatedFrameRate: rate, maximumByteCount: 1 << 16))
  }

  /// The configuration of a take that is written without a session, whose stream was switched on at
  /// the time of frame 0.
  func configuration(
    _ video: VideoOutputSettings = .automatic, to path: String, audio: TakeAudio? = nil,
    delivers delivered: VideoCodec = .mjpeg, configure: (inout RecordingSettings) -> Void = { _ in }
  ) throws -> TakeConfiguration {
    let session =
      delivered == .h264
      ? try streamSession(ScriptedDriver([])) : try session(ScriptedDriver([]))
    let input = try #require(session.inputs.first as? DeviceInput)
    var settings = RecordingSettings(path: path)
    settings.video = video
    configure(&settings)
    let control = CaptureControl()
    control.switchedOn.store(base, ordering: .relaxed)
    return TakeConfiguration(
      input: input, settings: settings, plan: try settings.plan(for: input.delivery),
      control: control, audio: audio, beginsWithStream: true)
  }

  /// The frames of an H.264 stream from a camera, with a key frame from time to time.
  func streamFrames(_ count: Int, in scratch: Scratch) throws -> [[UInt8]] {
    let path = scratch.file("camera.mov")
    _ = try take(try frames(0..<count), codec: .h264, to: path)
    var demuxer = try Demuxer(opening: path)
    guard let track = demuxer.tracks.first(where: { $0.kind == .video }) else { return [] }
    var filter = try BitstreamFilter(named: "h264_mp4toannexb", parameters: track.parameters)
    var images: [[UInt8]] = []
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.index else { continue }
      images.append(try filter.filter(packet).withBytes { [UInt8]($0) })
    }
    return images
  }

  /// The audio of the camera, for a take without a session.
  func audio(in scratch: Scratch) throws -> TakeAudio? {
    var camera = self
    camera.hasAudio = true
    let settings = RecordingSettings(path: scratch.file("none.mov"))
    let session = try camera.session(ScriptedDriver([]))
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    return try TakeAudio.of(session, into: output, settings, keeping: 1)
  }

  /// Records the frames of a script.
  func take(
    _ steps: [ScriptedDriver.Step], codec: VideoOutputSettings = .automatic, to path: String,
    configure: (inout RecordingSettings) -> Void = { _ in },
    progress: (MovieFileOutput.Progress) -> Void = { _ in }
  ) throws -> (report: RecordingReport, driver: ScriptedDriver) {
    let driver = ScriptedDriver(steps)
    var settings = RecordingSettings(path: path)
    settings.video = codec
    configure(&settings)
    let session = try session(driver)
    let output = try MovieFileOutput(session: session, settings: settings)
    let report = try output.record(progress: progress)
    let input = try #require(session.inputs.first as? DeviceInput)
    // All buffers are returned, except for frames that still waited when the stream stopped.
    #expect(input.pool.heldCount == 0)
    #expect(driver.missingBuffers <= input.pool.capacity / 2)
    return (report, driver)
  }
}

/// Whether a file holds a box of this four-letter type.
func holdsBox(_ name: String, _ path: String) throws -> Bool {
  let bytes = try bytes(of: path)
  let letters = Array(name.utf8)
  return bytes.indices.contains { position in
    position + 4 <= bytes.count && bytes[position] == letters[0]
      && bytes[position..<(position + 4)].elementsEqual(letters)
  }
}

extension VideoOutputSettings {
  static let h264 = codec(.h264)
  static let ffv1 = codec(.ffv1)
  static let mjpeg = codec(.mjpeg)
  static let raw = codec(.rawVideo)
}
