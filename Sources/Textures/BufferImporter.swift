// SPDX-License-Identifier: Apache-2.0

import CGLES
import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankV4L2

/// Textures that share the memory of camera buffers, imported as dma-bufs.
///
/// Each buffer is imported once, and its textures show every frame that the driver writes to it.
/// The textures last until the camera's buffer pool is released. The OpenGL context must be current
/// at every call.
struct BufferImporter {
  /// The result of importing a buffer.
  enum Outcome {
    /// One texture for each plane of the layout.
    case textures([UInt32])
    case refused(ImportRefusal)
  }

  /// The textures of one camera in one format.
  private struct Camera {
    weak var pool: BufferPool?
    var textures: [Int: [UInt32]] = [:]
    /// The reason why this camera's buffers cannot be imported; nil if they can.
    var refusal: ImportRefusal?
  }

  private let display: EGLDisplay
  private let missingExtension: String?
  private var cameras: [ObjectIdentifier: Camera] = [:]

  /// Checks which extensions the current context has.
  init?() {
    guard let display = eglGetCurrentDisplay() else { return nil }
    self.display = display
    func has(_ name: String, _ list: String?) -> Bool {
      list?.split(separator: " ").contains { $0 == name } == true
    }
    let displayExtensions = eglQueryString(display, EGL_EXTENSIONS).map { String(cString: $0) }
    let extensions = glGetString(GLenum(GL_EXTENSIONS)).map { String(cString: $0) }
    missingExtension =
      !has("EGL_EXT_image_dma_buf_import", displayExtensions)
      ? "EGL_EXT_image_dma_buf_import"
      : !has("GL_OES_EGL_image", extensions) ? "GL_OES_EGL_image" : nil
  }

  /// The OpenGL names of the textures of all cameras.
  var names: [UInt32] { cameras.values.flatMap { $0.textures.values.joined() } }

  /// Removes the textures of cameras whose buffer pool was released, and returns them for deletion.
  mutating func takeGone() -> [UInt32] {
    let gone = cameras.filter { $0.value.pool == nil }
    for key in gone.keys { cameras[key] = nil }
    return gone.values.flatMap { $0.textures.values.joined() }
  }

  /// Returns the textures of the buffer that a sample holds.
  ///
  /// - Parameters:
  ///   - frame: The frame in the sample's memory.
  ///   - sample: The sample, which holds the buffer, so that the driver does not reuse it.
  ///   - layout: The planes and the color conversion that the shader uses.
  /// - Returns: The textures, or the reason why there are none.
  mutating func textures(
    of frame: MediaFrame, in sample: SampleBuffer, _ layout: TextureLayout
  ) -> Outcome {
    guard let buffer = sample.cameraBuffer else { return .refused(.notInCameraBuffer) }
    let key = ObjectIdentifier(buffer.pool)
    // A new pool may get the address of a released pool, but `takeGone()` has removed the entry of
    // the released pool before.
    var camera = cameras[key] ?? Camera(pool: buffer.pool)
    if let refusal = camera.refusal { return .refused(refusal) }
    if let names = camera.textures[buffer.index] { return .textures(names) }
    let outcome = makeTextures(of: frame, in: buffer, layout)
    switch outcome {
    case .textures(let names): camera.textures[buffer.index] = names
    case .refused(let refusal): camera.refusal = refusal
    }
    cameras[key] = camera
    return outcome
  }

  private func makeTextures(
    of frame: MediaFrame, in buffer: CameraBuffer, _ layout: TextureLayout
  ) -> Outcome {
    do throws(MediaError) {
      guard let exported = try buffer.export() else { return .refused(.notInCameraBuffer) }
      if let missingExtension { return .refused(.missingExtension(missingExtension)) }
      var names: [UInt32] = []
      for plane in layout.planes {
        guard let attributes = plane.importAttributes(exported, frame) else {
          glDeleteTextures(GLsizei(names.count), names)
          return .refused(.notInCameraBuffer)
        }
        let name = plane.makeTexture()
        names.append(name)
        if let code = bind(attributes) {
          glDeleteTextures(GLsizei(names.count), names)
          return .refused(.renderer(code: code))
        }
      }
      return .textures(names)
    } catch { return .refused(.driver(error)) }
  }

  /// Makes a dma-buf the storage of the bound texture.
  ///
  /// - Returns: The error of EGL or OpenGL ES, or nil after success.
  private func bind(_ attributes: [EGLAttrib]) -> UInt32? {
    while glGetError() != GLenum(GL_NO_ERROR) {}
    guard
      let image = eglCreateImage(
        display, nil, EGLenum(EGL_LINUX_DMA_BUF_EXT), nil, attributes)
    else { return UInt32(bitPattern: eglGetError()) }
    CGLES_setTextureImage(image)
    let code = glGetError()
    // The texture keeps the memory alive without the EGL image.
    eglDestroyImage(display, image)
    return code == GLenum(GL_NO_ERROR) ? nil : code
  }
}

extension TextureLayout.Plane {
  /// The DRM formats with the byte layouts of `GL_RED`, `GL_RG`, `GL_RGB` and `GL_RGBA`.
  private static let drmFormats = ["R8  ", "GR88", "BG24", "AB24"].map { name in
    name.utf8.reversed().reduce(0) { EGLAttrib($0) << 8 | EGLAttrib($1) }
  }

  /// Returns the attributes for EGL_EXT_image_dma_buf_import; nil if the plane is not inside the
  /// buffer.
  fileprivate func importAttributes(
    _ buffer: borrowing ExportedBuffer, _ frame: MediaFrame
  ) -> [EGLAttrib]? {
    guard let data = frame.planeData(source), let start = buffer.memory.baseAddress else {
      return nil
    }
    let offset = UnsafeRawPointer(data) - start
    let pitch = frame.bytesPerRow(source)
    guard offset >= 0, offset + pitch * (height - 1) + width * channels <= buffer.memory.count
    else { return nil }
    return [
      EGLAttrib(EGL_WIDTH), width, EGLAttrib(EGL_HEIGHT), height,
      EGLAttrib(EGL_LINUX_DRM_FOURCC_EXT), Self.drmFormats[channels - 1],
      EGLAttrib(EGL_DMA_BUF_PLANE0_FD_EXT), EGLAttrib(buffer.descriptor),
      EGLAttrib(EGL_DMA_BUF_PLANE0_OFFSET_EXT), offset,
      EGLAttrib(EGL_DMA_BUF_PLANE0_PITCH_EXT), pitch, EGLAttrib(EGL_NONE),
    ]
  }

  /// Makes a texture without storage, and binds it.
  func makeTexture() -> UInt32 {
    var name: UInt32 = 0
    glGenTextures(1, &name)
    glBindTexture(GLenum(GL_TEXTURE_2D), name)
    for (parameter, value) in [
      (GL_TEXTURE_MIN_FILTER, GL_LINEAR), (GL_TEXTURE_MAG_FILTER, GL_LINEAR),
      (GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE), (GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE),
    ] { glTexParameteri(GLenum(GL_TEXTURE_2D), GLenum(parameter), value) }
    return name
  }
}

/// The reason why a ``TextureCache`` that imports camera buffers uploaded a frame instead.
public enum ImportRefusal: Hashable, Sendable, CustomStringConvertible {
  /// The frame is not stored in a camera buffer that a texture can share.
  ///
  /// This is the case for compressed, converted and modified frames, for a `CapturedFrame`, for
  /// sources without a driver, and for frames that are copied out of several memory planes.
  case notInCameraBuffer
  /// The shader cannot read the pixel format, so the frame was converted.
  case formatNotReadable
  /// The renderer lacks a required extension of EGL or OpenGL ES.
  case missingExtension(String)
  /// The camera's driver does not export its buffers.
  case driver(MediaError)
  /// The renderer refused the buffer with an error of EGL or OpenGL ES, often because of its
  /// stride.
  case renderer(code: UInt32)

  /// The reason as a phrase.
  public var description: String {
    switch self {
    case .notInCameraBuffer: "the frame is not in a buffer of the camera"
    case .formatNotReadable: "the pixel format was converted"
    case .missingExtension(let name): "the renderer lacks \(name)"
    case .driver(let error): "the driver does not export its buffers: \(error.message)"
    case .renderer(let code): "the renderer refused the buffer (error 0x\(String(code, radix: 16)))"
    }
  }
}
