// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

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
