// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import CGLES
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankLibAV
@testable import OvercrankSimulatedCameras
@testable import OvercrankTextures

/// Textures on Mesa's software renderer, compared with pixel conversion by the CPU.
///
/// An OpenGL context belongs to a thread, so each test makes its own context and stays on its
/// thread.
struct TextureTests {
  /// The colors of the patches: primaries, grays, and strong colors that are not clipped in any
  /// channel.
  private static let colors: [(UInt8, UInt8, UInt8)] = [
    (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (60, 230, 90), (255, 0, 255),
    (0, 0, 0), (90, 90, 230), (128, 128, 128), (230, 60, 60), (255, 255, 255), (200, 120, 40),
  ]
  private static let patch = 32
  private static let (columns, rows) = (4, 3)
  private static var width: Int { columns * patch }
  private static var height: Int { rows * patch }

  /// The color patches in RGB.
  private func patches() throws -> MediaFrame {
    let image = try MediaFrame.video(width: Self.width, height: Self.height, pixelFormat: .rgb24)
    let data = try #require(image.planeData(0))
    for y in 0..<Self.height {
      for x in 0..<Self.width {
        let color = Self.colors[y / Self.patch * Self.columns + x / Self.patch]
        let offset = y * image.bytesPerRow(0) + x * 3
        (data[offset], data[offset + 1], data[offset + 2]) = color
      }
    }
    return image
  }

  /// The color patches in another pixel format.
  private func patches(
    as format: LibAVPixelFormat, _ isFullRange: Bool, _ space: AVColorSpace
  ) throws -> MediaFrame {
    var scaler = try Scaler(
      from: (Self.width, Self.height, .rgb24, true),
      to: (Self.width, Self.height, format, isFullRange), colorSpace: space)
    return try scaler.convert(patches())
  }

  /// An image with both chroma components joined in one plane.
  private func joined(_ frame: MediaFrame, _ format: LibAVPixelFormat) throws -> MediaFrame {
    let joined = try MediaFrame.video(
      width: Self.width, height: Self.height, pixelFormat: format)
    let (luma, chroma) = (try #require(joined.planeData(0)), try #require(joined.planeData(1)))
    let planes = try (0..<3).map { try #require(frame.planeData($0)) }
    for y in 0..<Self.height {
      for x in 0..<Self.width {
        luma[y * joined.bytesPerRow(0) + x] = planes[0][y * frame.bytesPerRow(0) + x]
        let plane = 1 + x % 2
        chroma[y * joined.bytesPerRow(1) + x] =
          planes[plane][y * frame.bytesPerRow(plane) + x / 2]
      }
    }
    return joined
  }

  /// The largest difference between two images inside the patches, away from the borders of the
  /// patches.
  private func difference(_ image: PixelBuffer, _ wanted: MediaFrame) throws -> Int {
    let data = try #require(wanted.planeData(0))
    #expect(image.width == Self.width && image.height == Self.height)
    var largest = 0
    for y in 0..<Self.height where (12..<20).contains(y % Self.patch) {
      for x in 0..<Self.width where (12..<20).contains(x % Self.patch) {
        for channel in 0..<3 {
          let one = image.bytes[(y * Self.width + x) * 3 + channel]
          let other = data[y * wanted.bytesPerRow(0) + x * 3 + channel]
          largest = max(largest, abs(Int(one) - Int(other)))
        }
      }
    }
    return largest
  }

  private static let formats = [
    "gray", "yuv410p", "yuv411p", "yuv420p", "yuv422p", "yuv444p", "yuvj420p", "yuvj422p", "nv12",
    "nv21", "nv16", "nv24", "nv42", "yuyv422", "yvyu422", "uyvy422", "rgb24", "bgr24", "rgba",
    "bgra",
    "argb", "abgr", "bgr0", "0rgb", "rgb565le", "rgb555be", "rgb444le", "p010le", "gray10le",
    "gray16le",
  ]

  @Test(arguments: formats)
  func `Drawn textures match software conversion in every format`(name: String) throws {
    let context = try OffscreenContext(width: Self.width, height: Self.height)
    let cache = try TextureCache()
    let renderer = try TextureRenderer()
    let format = try #require(LibAVPixelFormat(named: name))
    for isFullRange in [false, true] {
      for space in [AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT709] {
        let range = isFullRange ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
        // libswscale does not support NV16. Its reference is yuv422p with the chroma planes joined.
        let isNV16 = name == "nv16"
        let known = isNV16 ? try #require(LibAVPixelFormat(named: "yuv422p")) : format
        let reference = try patches(as: known, isFullRange || format.isFullRange, space)
        let frame = isNV16 ? try joined(reference, format) : reference
        for frame in [reference, frame] {
          frame.pointer.pointee.colorspace = space
          frame.pointer.pointee.color_range = range
        }
        var converter = FrameConverter(to: .rgb24, isFullRange: true)
        let wanted = try converter.convert(reference)
        context.clear()
        renderer.draw(try cache.texture(for: frame))
        let largest = try difference(context.pixelBuffer(), wanted)
        #expect(largest <= 2, "\(name), full range \(isFullRange), \(space): \(largest) levels")
      }
    }
  }

  @Test(arguments: [("yuv420p", [1, 1, 1]), ("nv12", [1, 2]), ("gray", [1]), ("rgba", [4])])
  func `The planes of a texture can be read`(name: String, channels: [Int]) throws {
    let context = try OffscreenContext(width: 8, height: 8)
    let cache = try TextureCache()
    let format = try #require(LibAVPixelFormat(named: name))
    let frame = try patches(as: format, true, AVCOL_SPC_BT709)
    let texture = try cache.texture(for: frame)
    #expect(texture.channelOrder.count == 3)
    try texture.withPlanes { planes in
      #expect(planes.map(\.channels) == channels)
      for (index, plane) in planes.enumerated() {
        var buffer: GLuint = 0
        glGenFramebuffers(1, &buffer)
        defer { glDeleteFramebuffers(1, &buffer) }
        glBindFramebuffer(GLenum(GL_FRAMEBUFFER), buffer)
        glFramebufferTexture2D(
          GLenum(GL_FRAMEBUFFER), GLenum(GL_COLOR_ATTACHMENT0), plane.target, plane.name, 0)
        var texels = [UInt8](repeating: 0, count: plane.width * plane.height * 4)
        glReadPixels(
          0, 0, GLsizei(plane.width), GLsizei(plane.height), GLenum(GL_RGBA),
          GLenum(GL_UNSIGNED_BYTE), &texels)
        let data = try #require(frame.planeData(index))
        let differing = (0..<plane.height).reduce(0) { count, y in
          count
            + (0..<plane.width).count { x in
              (0..<plane.channels).contains { channel in
                texels[(y * plane.width + x) * 4 + channel]
                  != data[y * frame.bytesPerRow(index) + x * plane.channels + channel]
              }
            }
        }
        #expect(differing == 0, "plane \(index)")
      }
    }
    withExtendedLifetime(context) {}
  }

  /// A frame of the synthetic camera, whose session still runs.
  private struct Captured {
    let session: CaptureSession
    let video = VideoDataOutput()
    private(set) var sample: SampleBuffer?

    init(_ mode: String) async throws {
      let device = try CaptureDevice.named("synthetic:320x240@240?scene=pattern&pace=max")
      session = try CaptureSession(
        device: device, format: device.format(matching: ModeRequest(parsing: mode)))
      try await session.addOutput(video)
      try await session.startRunning()
      for await sample in video.frames {
        self.sample = sample
        break
      }
    }

    mutating func release() { sample = nil }
  }

  @Test func `A texture keeps the camera buffer until the frame is drawn`()
    async throws
  {
    var captured = try await Captured("/yuyv")
    // No more frames arrive, so only the textures change the number of kept frames.
    await captured.session.stopRunning()
    try drawRepeatedly(&captured)
  }

  /// Draws a frame several times, on one thread.
  private func drawRepeatedly(_ captured: inout Captured) throws {
    let context = try OffscreenContext(width: 64, height: 48)
    let cache = try TextureCache()
    let renderer = try TextureRenderer()
    for index in 0..<12 {
      let texture = try cache.texture(for: try #require(captured.sample))
      #expect(texture.width == 320 && texture.height == 240)
      context.clear()
      renderer.draw(texture)
      // Waits until the renderer has drawn everything so far.
      if index == 5 { _ = try context.pixelBuffer() }
    }
    let held = captured.video.keptCount
    captured.release()
    // A frame in a packed format needs two textures.
    #expect(cache.textureCount % 2 == 0 && cache.textureCount < 24, "\(cache.textureCount)")
    // The renderer may still read the frame of the last texture.
    #expect(captured.video.keptCount == held)
    _ = try context.pixelBuffer()
    cache.flush()
    cache.flush()
    #expect(cache.heldFrameCount == 0 && captured.video.keptCount == held - 1)
    cache.removeUnused()
    #expect(cache.textureCount == 0)
  }

  @Test(arguments: ["/mjpg", "/yuyv", "/grey"])
  func `A drawn texture shows the number painted into its frame`(mode: String) async throws {
    let captured = try await Captured(mode)
    try checkNumber(try #require(captured.sample))
    await captured.session.stopRunning()
  }

  private func checkNumber(_ sample: SampleBuffer) throws {
    let context = try OffscreenContext(width: 320, height: 240)
    let cache = try TextureCache()
    let renderer = try TextureRenderer()
    renderer.draw(try cache.texture(for: sample))
    let image = try context.pixelBuffer()
    let number = FrameNumberPattern.read(width: 320, height: 240) {
      image.bytes[($1 * 320 + $0) * 3 + 1]
    }
    #expect(number == Int(sample.attachments.sequence))
    #expect(try context.pngData().starts(with: [0x89, 0x50]))
    #expect(!context.rendererName.isEmpty)
  }

  @Test func `A texture is deleted even if the cache is deallocated first`() throws {
    let context = try OffscreenContext(width: 16, height: 16)
    let image = try patches()
    var texture: FrameTexture? = try TextureCache().texture(for: image)
    let name = try #require(texture?.names.first)
    #expect(glIsTexture(name) == GLboolean(GL_TRUE))
    texture = nil
    #expect(glIsTexture(name) == GLboolean(GL_FALSE))
    withExtendedLifetime(context) {}
  }

  @Test func `A failed frame upload deletes the textures of the frame`() throws {
    let context = try OffscreenContext(width: 16, height: 16)
    let cache = try TextureCache()
    let image = try patches()
    _ = try cache.texture(for: image)
    cache.flush()
    _ = try context.pixelBuffer()
    cache.flush()
    #expect(cache.textureCount == 1)
    // The kept texture belongs to the first OpenGL context, so it is deleted when another one is
    // current.
    let other = try OffscreenContext(width: 16, height: 16)
    #expect(throws: MediaError.self) { try cache.texture(for: image) }
    #expect(cache.textureCount == 0)
    withExtendedLifetime(other) {}
    context.makeCurrent()
  }

  @Test func `Deleting an OpenGL context leaves another context current`() throws {
    var first: OffscreenContext? = try OffscreenContext(width: 16, height: 16)
    let second = try OffscreenContext(width: Self.width, height: Self.height)
    #expect(first?.width == 16)
    first = nil
    let renderer = try TextureRenderer()
    let image = try patches()
    renderer.draw(try TextureCache().texture(for: image))
    #expect(try difference(second.pixelBuffer(), image) <= 2)
  }

  @Test func `Rejects frame sizes that the OpenGL renderer cannot draw`() throws {
    let error = #expect(throws: MediaError.self) {
      try OffscreenContext(width: 1_000_000, height: 16)
    }
    #expect(error?.code == .noRenderer)
    let context = try OffscreenContext(width: 16, height: 16)
    let cache = try TextureCache()
    let huge = try MediaFrame.video(width: 40_000, height: 2, pixelFormat: .gray8)
    let second = #expect(throws: MediaError.self) { try cache.texture(for: huge) }
    #expect(second?.code == .notConvertible)
    withExtendedLifetime(context) {}
  }
}
