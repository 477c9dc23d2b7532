// SPDX-License-Identifier: Apache-2.0

import CGLES
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankTextures
import TestSupport
import Testing

extension Vivid {
  /// Whether Mesa can import buffers.
  ///
  /// Tests/Tools/Lab/run-tests.sh installs a version that can in the emulated machine.
  static let hasImport: Bool = {
    guard let context = try? OffscreenContext(width: 16, height: 16) else { return false }
    defer { withExtendedLifetime(context) {} }
    return eglQueryString(eglGetCurrentDisplay(), EGL_EXTENSIONS).map {
      String(cString: $0).contains("EGL_EXT_image_dma_buf_import")
    } ?? false
  }()
}

extension VividTests {
  /// Textures of buffers that a real driver exports as DMA-BUFs.
  @Suite(.enabled(if: Vivid.hasImport, "Mesa is older than 24, and imports no buffers"))
  struct Textures {
    private static let formats = ["yuyv", "uyvy", "nv12", "grey"]

    @Test(arguments: formats)
    func `Imported and uploaded buffers draw identical pixels`(format: String) async throws {
      try await compare(Vivid.node ?? "", format)
    }

    @Test(.enabled(if: Vivid.multiPlanarNode != nil, "LAB_VIVID makes no multi-planar vivid"))
    func `Imports a single-plane buffer of a multi-planar device`() async throws {
      try await compare(Vivid.multiPlanarNode ?? "", "yuyv")
    }

    /// Compares several frames from more than one buffer.
    private func compare(_ node: String, _ format: String) async throws {
      let camera = try CaptureDevice.named(node)
      let session = try CaptureSession(
        device: camera, format: camera.format(matching: ModeRequest(parsing: "320x180/\(format)")))
      let output = VideoDataOutput()
      try await session.addOutput(output)
      try await session.startRunning()
      let samples = await output.samples(3)
      try draw(samples)
      await session.stopRunning()
    }

    /// Draws each frame with imported and with uploaded textures, on one thread.
    private func draw(_ samples: [SampleBuffer]) throws {
      let context = try OffscreenContext(width: 320, height: 180)
      let renderer = try TextureRenderer()
      let (plain, importing) = (
        try TextureCache(), try TextureCache(importsCameraBuffers: true)
      )
      var images: Set<[UInt8]> = []
      for sample in samples {
        let pixels = try [plain, importing].map { cache in
          let texture = try cache.texture(for: sample)
          #expect(texture.isImported == cache.importsCameraBuffers)
          context.clear()
          renderer.draw(texture)
          return try context.pixelBuffer().bytes
        }
        #expect(pixels[0] == pixels[1], "\(String(describing: importing.importRefusal))")
        images.insert(pixels[1])
      }
      #expect(images.count == samples.count)
      print("vivid: \(samples.count) frames imported by \(context.rendererName)")
    }
  }
}
