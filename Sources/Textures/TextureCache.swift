// SPDX-License-Identifier: Apache-2.0

import CGLES
public import OvercrankCapture
package import OvercrankLibAV
public import OvercrankMediaCore

/// Makes textures of captured frames.
///
/// The planes of a frame are uploaded as they are, and a shader converts their colors by the tags
/// of the frame. Textures are reused, so a running preview makes no new textures. Formats that the
/// shader cannot read, such as Bayer or 10 bits, are converted to RGB before the upload.
///
/// ```swift
/// let context = try OffscreenContext(width: 640, height: 360)
/// let cache = try TextureCache()
/// let renderer = try TextureRenderer()
/// let texture = try cache.texture(for: sample)
/// renderer.draw(texture)
/// ```
///
/// With ``importsCameraBuffers``, the renderer reads the frames of uncompressed formats where the
/// driver wrote them: the buffers are exported (`VIDIOC_EXPBUF`) and imported
/// (`EGL_EXT_image_dma_buf_import`). A frame that cannot be imported is uploaded, and
/// ``importRefusal`` names the reason. Both methods give the same pixels.
///
/// Corresponds to `CVOpenGLESTextureCache`. An OpenGL ES 3 context must be current on the calling
/// thread at every call. The same holds when the last reference to the cache or to one of its
/// textures is released; otherwise the textures last as long as the context.
public final class TextureCache {
  /// Released textures, to be reused after the renderer has passed a fence.
  private struct Pending {
    let entry: ReleasedTextures.Entry
    let fence: GLsync?
  }

  let released = ReleasedTextures()
  private let context: EGLContext
  private var pending: [Pending] = []
  private var unused: [[TextureLayout.Plane]: [[UInt32]]] = [:]
  private var decoder = FrameDecoder()
  private var converter = FrameConverter(to: .bgra, isFullRange: true)
  private var importer: BufferImporter?
  private let largestSide: Int
  /// Whether the cache imports the buffers of cameras if it can, instead of uploading their frames.
  ///
  /// An upload is fast enough for one camera: less than a millisecond for 1280x720. An import needs
  /// no copy, but the camera cannot reuse the buffer until the renderer has finished with it.
  public let importsCameraBuffers: Bool
  /// The reason why the last frame was uploaded although ``importsCameraBuffers`` is set; nil if it
  /// was imported.
  public private(set) var importRefusal: ImportRefusal?
  /// The number of upload textures that the cache holds, in use or not.
  public private(set) var textureCount = 0

  /// Creates a cache for the current context.
  ///
  /// - Parameter importsCameraBuffers: See ``importsCameraBuffers``.
  /// - Throws: `MediaError` with `.noRenderer` without a current context.
  public init(importsCameraBuffers: Bool = false) throws(MediaError) {
    guard let context = eglGetCurrentContext() else { throw .noRenderer("no context is current") }
    (self.context, self.importsCameraBuffers) = (context, importsCameraBuffers)
    importer = importsCameraBuffers ? BufferImporter() : nil
    var side: GLint = 0
    glGetIntegerv(GLenum(GL_MAX_TEXTURE_SIZE), &side)
    largestSide = Int(side)
  }

  deinit {
    // In another context, the same names may belong to other textures, so nothing is deleted.
    guard eglGetCurrentContext() == context else { return }
    for pending in pending { glDeleteSync(pending.fence) }
    let entries = pending.map(\.entry) + released.takeAll()
    for names in unused.values.joined() + entries.map(\.names) + [importer?.names ?? []] {
      glDeleteTextures(GLsizei(names.count), names)
    }
  }

  /// The number of released frames whose buffers are still held, because the renderer may still
  /// read them.
  public var heldFrameCount: Int { pending.count { $0.entry.sample != nil } }

  /// Makes a texture of a captured frame.
  ///
  /// The sample is retained until the texture is released and the renderer has finished with it.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a damaged frame, a codec with inter-frame
  ///   prediction, or a frame that is too large for the renderer; `.noRenderer` if the renderer has
  ///   no memory.
  public func texture(for sample: SampleBuffer) throws(MediaError) -> FrameTexture {
    try sample.withBytes { bytes throws(MediaError) in
      try texture(for: bytes, sample.formatDescription, of: sample)
    }
  }

  /// Makes a texture of a frame in the camera's own buffer; the buffer may be reused after the
  /// call.
  ///
  /// Use this in loops that stay on one thread, with `VideoDataOutput.withNextFrame(_:)`. A task
  /// may continue on another thread after each `await`, where its OpenGL context is not current.
  ///
  /// - Throws: `MediaError` as ``texture(for:)`` does for a sample.
  public func texture(for frame: borrowing CapturedFrame) throws(MediaError) -> FrameTexture {
    let description = frame.formatDescription
    return try frame.withBytes { bytes throws(MediaError) in
      try texture(for: bytes, description, of: nil)
    }
  }

  private func texture(
    for bytes: UnsafeRawBufferPointer, _ description: FormatDescription, of sample: SampleBuffer?
  ) throws(MediaError) -> FrameTexture {
    let made: Result<FrameTexture, MediaError>
    do throws(CallFailure) {
      made = try decoder.withFrame(bytes, description) { frame in
        Result { () throws(MediaError) in try texture(for: frame, of: sample) }
      }
    } catch { throw Self.notConvertible(error) }
    return try made.get()
  }

  /// Makes a texture of a frame, with the color conversion that its tags require.
  package func texture(
    for frame: MediaFrame, of sample: SampleBuffer? = nil
  ) throws(MediaError) -> FrameTexture {
    flush()
    guard frame.width <= largestSide, frame.height <= largestSide else {
      throw MediaError(
        .notConvertible,
        "the renderer has no textures of \(frame.width)x\(frame.height)",
        recovery: "scale the frame to at most \(largestSide) pixels")
    }
    guard let layout = TextureLayout(frame) else {
      importRefusal = importsCameraBuffers ? .formatNotReadable : nil
      let converted: MediaFrame
      do throws(CallFailure) { converted = try converter.convert(frame) } catch {
        throw Self.notConvertible(error)
      }
      return try upload(converted, TextureLayout(converted), sample)
    }
    if let imported = imported(frame, layout, sample) { return imported }
    return try upload(frame, layout, sample)
  }

  /// Makes a texture that shares the camera's buffer; nil if the frame must be uploaded instead.
  private func imported(
    _ frame: MediaFrame, _ layout: TextureLayout, _ sample: SampleBuffer?
  ) -> FrameTexture? {
    guard importsCameraBuffers else { return nil }
    importRefusal = .notInCameraBuffer
    guard let sample, let outcome = importer?.textures(of: frame, in: sample, layout) else {
      return nil
    }
    switch outcome {
    case .refused(let refusal):
      importRefusal = refusal
      return nil
    case .textures(let names):
      importRefusal = nil
      return FrameTexture(layout, names, of: frame, sample, isImported: true, in: self)
    }
  }

  private static func notConvertible(_ error: CallFailure) -> MediaError {
    MediaError(
      .notConvertible, "could not make a texture of a frame: \(error)",
      recovery: "choose another format of the camera")
  }

  private func upload(
    _ frame: MediaFrame, _ layout: TextureLayout?, _ sample: SampleBuffer?
  ) throws(MediaError) -> FrameTexture {
    guard let layout else { throw .noRenderer("it cannot read BGRA") }
    while glGetError() != GLenum(GL_NO_ERROR) {}
    let names = unused[layout.planes]?.popLast() ?? make(layout)
    glPixelStorei(GLenum(GL_UNPACK_ALIGNMENT), 1)
    for (name, plane) in zip(names, layout.planes) {
      glBindTexture(GLenum(GL_TEXTURE_2D), name)
      glPixelStorei(
        GLenum(GL_UNPACK_ROW_LENGTH), GLint(frame.bytesPerRow(plane.source) / plane.channels))
      glTexSubImage2D(
        GLenum(GL_TEXTURE_2D), 0, 0, 0, GLsizei(plane.width), GLsizei(plane.height),
        Self.format(plane), GLenum(GL_UNSIGNED_BYTE), frame.planeData(plane.source))
    }
    glPixelStorei(GLenum(GL_UNPACK_ROW_LENGTH), 0)
    let error = glGetError()
    guard error == GLenum(GL_NO_ERROR) else {
      delete(names)
      throw .noRenderer("a frame cannot be uploaded (OpenGL error 0x\(String(error, radix: 16)))")
    }
    return FrameTexture(layout, names, of: frame, sample, isImported: false, in: self)
  }

  private func delete(_ names: [UInt32]) {
    glDeleteTextures(GLsizei(names.count), names)
    textureCount -= names.count
  }

  private static func format(_ plane: TextureLayout.Plane) -> GLenum {
    GLenum([GL_RED, GL_RG, GL_RGB, GL_RGBA][plane.channels - 1])
  }

  private func make(_ layout: TextureLayout) -> [UInt32] {
    textureCount += layout.planes.count
    return layout.planes.map { plane in
      let name = plane.makeTexture()
      let format = GLenum([GL_R8, GL_RG8, GL_RGB8, GL_RGBA8][plane.channels - 1])
      glTexStorage2D(
        GLenum(GL_TEXTURE_2D), 1, format, GLsizei(plane.width), GLsizei(plane.height))
      return name
    }
  }

  /// Reclaims the textures that the renderer has finished with, and releases their frames.
  ///
  /// Each ``texture(for:)`` calls this method. A program that makes no more textures calls it to
  /// release the camera's buffers. The method does not wait.
  public func flush() {
    if let gone = importer?.takeGone() { glDeleteTextures(GLsizei(gone.count), gone) }
    for entry in released.takeAll() {
      // All drawing with these textures was issued before this fence.
      let fence = glFenceSync(GLenum(GL_SYNC_GPU_COMMANDS_COMPLETE), 0)
      pending.append(Pending(entry: entry, fence: fence))
    }
    guard !pending.isEmpty else { return }
    pending.removeAll { pending in
      guard let fence = pending.fence else {
        recycle(pending.entry)
        return true
      }
      let state = glClientWaitSync(fence, GLbitfield(GL_SYNC_FLUSH_COMMANDS_BIT), 0)
      guard state != GLenum(GL_TIMEOUT_EXPIRED) else { return false }
      glDeleteSync(fence)
      recycle(pending.entry)
      return true
    }
  }

  private func recycle(_ entry: ReleasedTextures.Entry) {
    guard !entry.names.isEmpty else { return }
    unused[entry.planes, default: []].append(entry.names)
  }

  /// Deletes the textures that are not in use.
  public func removeUnused() {
    flush()
    for names in unused.values.joined() { delete(names) }
    unused = [:]
  }
}
