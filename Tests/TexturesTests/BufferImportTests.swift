// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankTextures
import TestSupport
import Testing

/// Textures that import the buffers of a camera, compared with textures of uploaded frames.
///
/// Mesa's software renderer can import buffers since version 24. Older versions report the missing
/// extension. The emulated machine has a newer version; see Tests/Tools/Lab.
struct BufferImportTests {
  private static let (width, height) = (128, 96)

  /// A frame with random bytes in the driver's memory.
  private func sample(
    _ format: LibAVPixelFormat, _ exports: MemoryFileDriver.Exports = .memory
  ) async throws -> (sample: SampleBuffer, driver: MemoryFileDriver) {
    let delivery = try FrameDelivery(
      layout: .raw(format, bytesPerRow: 0), width: Self.width, height: Self.height)
    let driver = try MemoryFileDriver(
      byteCount: MediaFrame.byteCount(
        width: Self.width, height: Self.height, pixelFormat: format, bytesPerRow: 0), exports)
    let device = try CaptureDevice.named("synthetic:\(Self.width)x\(Self.height)@240")
    let session = CaptureSession(
      DeviceInput(
        device: device, format: try device.format(matching: ModeRequest(parsing: "/yuyv")),
        driver: driver, delivery: delivery, negotiatedFrameRate: FrameRate(240),
        maximumByteCount: Self.width * Self.height * 4))
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    let sample = await output.frames.first { _ in true }
    await session.stopRunning()
    return (try #require(sample), driver)
  }

  /// The pixels of a sample that was drawn with textures of a cache.
  private func drawn(
    _ sample: SampleBuffer, _ cache: TextureCache, _ renderer: TextureRenderer,
    _ context: OffscreenContext
  ) throws -> (pixels: [UInt8], isImported: Bool) {
    let texture = try cache.texture(for: sample)
    #expect(texture.width == Self.width && texture.height == Self.height)
    context.clear()
    renderer.draw(texture)
    return (try context.pixelBuffer().bytes, texture.isImported)
  }

  @Test(arguments: ["yuyv422", "uyvy422", "nv12", "gray", "yuv420p", "bgra"])
  func `A frame imported as a DMA-BUF equals an uploaded frame`(
    name: String
  ) async throws {
    let (sample, driver) = try await sample(try #require(LibAVPixelFormat(named: name)))
    try compare(sample, driver)
  }

  private func compare(_ sample: SampleBuffer, _ driver: MemoryFileDriver) throws {
    let context = try OffscreenContext(width: Self.width, height: Self.height)
    let renderer = try TextureRenderer()
    let plain = try TextureCache()
    let uploaded = try drawn(sample, plain, renderer, context)
    #expect(!uploaded.isImported && plain.importRefusal == nil && driver.exportCount == 0)
    let cache = try TextureCache(importsCameraBuffers: true)
    for _ in 0..<3 {
      let (pixels, isImported) = try drawn(sample, cache, renderer, context)
      #expect(pixels == uploaded.pixels)
      #expect(isImported == (cache.importRefusal == nil))
      switch cache.importRefusal {
      case nil: #expect(cache.textureCount == 0)
      case .missingExtension(let name): #expect(name.contains("_") && !isImported)
      case .some(let refusal): Issue.record("\(refusal)")
      }
    }
    // The camera buffer is exported only once.
    #expect(driver.exportCount == 1)
  }

  @Test func `The texture cache reports why a frame was not imported`() async throws {
    let refusing = try await sample(.yuyv422, .failure).sample
    let copied = try await sample(.yuyv422, .nothing).sample
    let deep = try await sample(try #require(LibAVPixelFormat(named: "gray16le"))).sample
    try checkReasons([
      (refusing, .driver(MemoryFileDriver.error)), (copied, .notInCameraBuffer),
      (deep, .formatNotReadable),
    ])
  }

  private func checkReasons(_ table: [(SampleBuffer, ImportRefusal)]) throws {
    let context = try OffscreenContext(width: Self.width, height: Self.height)
    let renderer = try TextureRenderer()
    let cache = try TextureCache(importsCameraBuffers: true)
    for (sample, reason) in table {
      let (pixels, isImported) = try drawn(sample, cache, renderer, context)
      #expect(cache.importRefusal == reason && !isImported)
      #expect(try pixels == drawn(sample, TextureCache(), renderer, context).pixels)
      #expect(!reason.description.isEmpty)
    }
  }
}
