// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// Damaged JPEG images, and images that only look unusual.
struct FrameIntegrityTests {
  /// Images of the synthetic camera, which have restart markers.
  private static func syntheticImages(
    _ scene: SyntheticScene, width: Int, height: Int
  ) throws -> [[UInt8]] {
    var settings = SyntheticDriver.Settings(
      width: width, height: height, frameRate: FrameRate(240), layout: .mjpeg)
    settings.scene = scene
    var generator = try settings.generator()
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: generator.maximumByteCount, alignment: 16)
    defer { buffer.deallocate() }
    return try [0, 1, 240].map { number in
      Array(
        buffer.prefix(
          try generator.make(
            number: number, isFlash: settings.isFlash(Int64(number)), into: buffer)))
    }
  }

  /// An image of noise without restart markers.
  private static func plainImage(_ format: LibAVPixelFormat, huffman: String) throws -> [UInt8] {
    let frame = try MediaFrame.video(width: 328, height: 248, pixelFormat: format)
    for plane in 0..<3 {
      let rows = plane > 0 && format == .yuvj420p ? 124 : 248
      for offset in 0..<(frame.bytesPerRow(plane) * rows) {
        frame.planeData(plane)?[offset] = UInt8(offset * offset % 251)
      }
    }
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: 328, height: 248, pixelFormat: format, timescale: 1)
    settings.options = ["huffman": huffman]
    var encoder = try Encoder(video: settings)
    try encoder.send(frame)
    try encoder.send(nil)
    return try #require(try encoder.nextPacket()).withBytes { [UInt8]($0) }
  }

  private static func images() throws -> [[UInt8]] {
    try syntheticImages(.pattern, width: 642, height: 362)
      + syntheticImages(.ball(BouncingBall()), width: 640, height: 360)
      + [
        plainImage(.yuvj422p, huffman: "default"), plainImage(.yuvj420p, huffman: "optimal"),
      ]
  }

  private func isIntact(_ image: some Sequence<UInt8>) -> Bool {
    Array(image).withUnsafeBytes { bytes in
      JPEGStructure.image(in: bytes).map(JPEGStructure.isIntact) ?? false
    }
  }

  /// The index of the first byte of the scan.
  private func scanStart(_ image: [UInt8]) throws -> Int {
    let marker = try #require(
      image.indices.dropLast().last { image[$0] == 0xFF && image[$0 + 1] == 0xDA })
    return marker + 2 + Int(image[marker + 2]) << 8 + Int(image[marker + 3])
  }

  /// The indices of the restart markers.
  private func restarts(_ image: [UInt8]) throws -> [Int] {
    try (scanStart(image)..<(image.count - 1)).filter {
      image[$0] == 0xFF && (0xD0...0xD7).contains(image[$0 + 1])
    }
  }

  @Test func `Whole images are intact`() throws {
    for image in try Self.images() {
      #expect(isIntact(image))
      #expect(isIntact(image + [0, 0, 0]), "padded with zeros")
      #expect(isIntact(image + [0, 0] + image), "two fields")
    }
  }

  @Test func `An image without its start or its end is damaged`() throws {
    for image in try Self.images() {
      for count in [1, 2, 512, 1_024] {
        #expect(!isIntact(Array(image.dropFirst(count))))
        #expect(!isIntact(Array(image.dropLast(count))))
      }
    }
  }

  @Test func `An image that lost a packet with a restart marker is damaged`() throws {
    for image in try Self.images() {
      for marker in try restarts(image) {
        for count in [2, 20, 512] where marker + count < image.count - 2 {
          var damaged = image
          damaged.removeSubrange(marker..<(marker + count))
          #expect(!isIntact(damaged), "\(count) bytes from \(marker)")
        }
      }
    }
  }

  @Test func `An image that ends early is damaged`() throws {
    for image in try Self.images() {
      let start = try scanStart(image)
      for share in 1...9 {
        let place = start + (image.count - start) * share / 10
        #expect(
          !isIntact(image[..<place] + [0xFF, 0xD9] + image[place...]), "a marker at \(place)")
      }
      #expect(!isIntact(image[..<(start + 16)] + [0xFF, 0xD9]), "a scan of 16 bytes")
    }
  }

  @Test func `A marker that cannot occur in a scan shows damage`() throws {
    for image in try Self.images() {
      let place = try scanStart(image) + 40
      for code in [0x01, 0x42, 0xBF, 0xD8] as [UInt8] {
        #expect(!isIntact(image[..<place] + [0xFF, code] + image[place...]), "marker \(code)")
      }
    }
  }

  @Test func `A header with a wrong length is damaged`() throws {
    for image in try Self.images() {
      var damaged = image
      damaged.removeSubrange(30..<60)
      #expect(!isIntact(damaged))
    }
  }

  @Test func `Any bytes between both markers are checked without a crash`() throws {
    for image in try Self.images() {
      for index in stride(from: 0, to: min(image.count, 1_200), by: 1) {
        for value in [0, 0xFF, 0xDA, 0xD9] as [UInt8] {
          var damaged = image
          damaged[index] = value
          _ = isIntact(damaged)
          _ = isIntact(Array(image[..<index]) + [0xFF, 0xD9])
        }
      }
    }
  }

  @Test func `A defect counts as damage once an image had none`() throws {
    let image = try #require(try Self.images().first)
    let marker = try #require(try restarts(image).first)
    var defective = image
    defective.removeSubrange(marker..<(marker + 2))
    var check = FrameIntegrityCheck(byteCount: nil, isJPEG: true)
    func holds(_ image: [UInt8]) -> Bool { image.withUnsafeBytes { check.holds($0) } }
    // A camera may always count its restart markers wrong.
    #expect(holds(defective))
    #expect(!holds(Array(defective.dropLast())))
    #expect(holds(image))
    #expect(!holds(defective))
    #expect(holds(image))
  }
}
