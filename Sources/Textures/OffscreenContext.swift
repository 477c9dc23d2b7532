// SPDX-License-Identifier: Apache-2.0

import CGLES
import OvercrankLibAV
public import OvercrankMediaCore

/// An OpenGL ES 3 context without a screen, with an image to draw into.
///
/// Machines without a screen or a GPU can use it with Mesa's software renderer. A program with a
/// window uses the window's own context instead. Only the thread that created the context may use
/// it and the objects that draw with it.
public final class OffscreenContext {
  /// The width of the image in pixels.
  public let width: Int
  /// The height of the image in pixels.
  public let height: Int

  private let display: EGLDisplay
  private let context: EGLContext
  private var framebuffer: GLuint = 0
  private var renderbuffers: [GLuint] = [0, 0]

  /// Creates a context, makes it current, and clears its image to opaque black.
  ///
  /// - Parameters:
  ///   - width: The width of the image in pixels, above zero.
  ///   - height: The height of the image in pixels, above zero.
  /// - Throws: `MediaError` with `.noRenderer`.
  public init(width: Int, height: Int) throws(MediaError) {
    precondition(width > 0 && height > 0, "an image has at least one pixel")
    (self.width, self.height) = (width, height)
    guard let display = eglGetPlatformDisplay(EGLenum(EGL_PLATFORM_SURFACELESS_MESA), nil, nil),
      eglInitialize(display, nil, nil) == EGL_TRUE
    else { throw .noRenderer(Self.eglError("no display")) }
    self.display = display
    guard eglBindAPI(EGLenum(EGL_OPENGL_ES_API)) == EGL_TRUE else {
      throw .noRenderer(Self.eglError("no OpenGL ES"))
    }
    // The context draws only into its own framebuffer, so it needs no EGL configuration.
    let attributes = [EGLint(EGL_CONTEXT_MAJOR_VERSION), 3, EGLint(EGL_NONE)]
    guard let context = eglCreateContext(display, nil, nil, attributes) else {
      throw .noRenderer(Self.eglError("no context"))
    }
    self.context = context
    guard eglMakeCurrent(display, nil, nil, context) == EGL_TRUE else {
      throw .noRenderer(Self.eglError("the context cannot be used"))
    }
    glGenFramebuffers(1, &framebuffer)
    glGenRenderbuffers(2, &renderbuffers)
    glBindFramebuffer(GLenum(GL_FRAMEBUFFER), framebuffer)
    let parts = [(GL_RGBA8, GL_COLOR_ATTACHMENT0), (GL_DEPTH_COMPONENT16, GL_DEPTH_ATTACHMENT)]
    for (renderbuffer, (format, attachment)) in zip(renderbuffers, parts) {
      glBindRenderbuffer(GLenum(GL_RENDERBUFFER), renderbuffer)
      glRenderbufferStorage(
        GLenum(GL_RENDERBUFFER), GLenum(format), GLsizei(width), GLsizei(height))
      glFramebufferRenderbuffer(
        GLenum(GL_FRAMEBUFFER), GLenum(attachment), GLenum(GL_RENDERBUFFER), renderbuffer)
    }
    let status = glCheckFramebufferStatus(GLenum(GL_FRAMEBUFFER))
    guard status == GLenum(GL_FRAMEBUFFER_COMPLETE) else {
      throw .noRenderer("cannot create an image of \(width)x\(height) (\(status))")
    }
    clear()
  }

  deinit {
    // In another context, the same names may belong to other objects, so nothing is deleted.
    if eglGetCurrentContext() == context {
      glDeleteFramebuffers(1, &framebuffer)
      glDeleteRenderbuffers(2, &renderbuffers)
      eglMakeCurrent(display, nil, nil, nil)
    }
    eglDestroyContext(display, context)
    // The EGL display stays open, because all contexts of the process share it.
  }

  private static func eglError(_ what: String) -> String {
    "\(what) (EGL error 0x\(String(eglGetError(), radix: 16)))"
  }

  /// The name of the renderer, such as `llvmpipe (LLVM 15.0.6, 256 bits)`.
  public var rendererName: String {
    glGetString(GLenum(GL_RENDERER)).map { String(cString: $0) } ?? "unknown"
  }

  /// Makes the context current and clears its image to opaque black.
  public func clear() {
    makeCurrent()
    glClearColor(0, 0, 0, 1)
    glClear(GLbitfield(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT))
  }

  /// Makes the context and its image the target of the calling thread.
  public func makeCurrent() {
    eglMakeCurrent(display, nil, nil, context)
    glBindFramebuffer(GLenum(GL_FRAMEBUFFER), framebuffer)
    glViewport(0, 0, GLsizei(width), GLsizei(height))
  }

  /// Reads the image as RGB pixels, from the upper left corner.
  ///
  /// Waits until all drawing has finished.
  ///
  /// - Throws: `MediaError` with `.outOfMemory`.
  public func pixelBuffer() throws(MediaError) -> PixelBuffer {
    var image = PixelBuffer(format: .rgb24)
    do throws(CallFailure) { try frame().copy(into: &image) } catch {
      throw MediaError(error, at: .resources)
    }
    return image
  }

  /// Returns the image as a PNG file.
  ///
  /// - Throws: `MediaError` with `.outOfMemory`.
  public func pngData() throws(MediaError) -> [UInt8] {
    try CallStage.resources.converting { () throws(CallFailure) in try frame().pngBytes() }
  }

  private func frame() throws(CallFailure) -> MediaFrame {
    makeCurrent()
    var bytes = [UInt8](repeating: 0, count: width * height * 4)
    glPixelStorei(GLenum(GL_PACK_ALIGNMENT), 4)
    glReadPixels(
      0, 0, GLsizei(width), GLsizei(height), GLenum(GL_RGBA), GLenum(GL_UNSIGNED_BYTE), &bytes)
    let image = try MediaFrame.video(width: width, height: height, pixelFormat: .rgb24)
    guard let target = image.planeData(0) else { return image }
    for y in 0..<height {
      // In OpenGL, the first row is the lowest, so rows are copied in reverse order.
      let (from, to) = ((height - 1 - y) * width * 4, y * image.bytesPerRow(0))
      for x in 0..<width {
        for channel in 0..<3 { target[to + x * 3 + channel] = bytes[from + x * 4 + channel] }
      }
    }
    return image
  }
}
