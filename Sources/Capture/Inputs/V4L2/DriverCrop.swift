// SPDX-License-Identifier: Apache-2.0

import OvercrankV4L2
import Synchronization

/// Zoom by the driver, which crops the image and scales the crop to the size of the frames.
///
/// A driver without a scaler would deliver smaller frames instead, so such a driver counts as
/// unable to crop. All calls may come from any thread.
final class DriverCrop: Sendable {
  private struct State {
    /// The driver's crop rectangle before the first zoom.
    var original: CropRectangle?
    var size: (width: UInt32, height: UInt32) = (0, 0)
    /// The most recently requested zoom factor.
    var factor = 1.0
    /// Whether the crop differs from the crop before the capture.
    var isCropped = false
    var isRefused = false
  }

  /// The smallest zoom factor at which a driver that still delivers the whole image counts as
  /// unable to crop.
  ///
  /// At a smaller factor, the driver's crop steps may only be too coarse.
  private static let certainFactor = 1.1

  private let queue: BufferQueue
  private let state = Mutex(State())

  init(_ queue: BufferQueue) { self.queue = queue }

  deinit { restore() }

  /// Crops the image around its center.
  ///
  /// - Returns: The factor in force, or nil if the driver cannot crop. The image is then whole.
  func zoom(to factor: Double) -> Double? {
    state.withLock { state in
      guard !state.isRefused else { return nil }
      if state.original == nil {
        guard let original = try? queue.crop(), let format = try? queue.currentFormat() else {
          state.isRefused = true
          return nil
        }
        (state.original, state.size) = (original, (format.width, format.height))
      }
      guard let original = state.original else { return nil }
      if let granted = set(original, factor, size: state.size) {
        (state.factor, state.isCropped) = (factor, factor != 1)
        return granted
      }
      // The driver may have applied the crop although it cannot scale, so the original crop is set
      // again.
      _ = try? queue.setCrop(original)
      (state.isCropped, state.isRefused) = (false, true)
      return nil
    }
  }

  /// Restores the crop from before the capture.
  func restore() {
    state.withLock { state in
      // An error means that the device is lost, and then no crop is left to restore.
      guard state.isCropped, let original = state.original else { return }
      _ = try? queue.setCrop(original)
      state.isCropped = false
    }
  }

  /// Applies the last zoom factor again, for the next stream.
  func resume() {
    state.withLock { state in
      guard let original = state.original, state.factor != 1, !state.isRefused else { return }
      state.isCropped = set(original, state.factor, size: state.size) != nil
    }
  }

  /// Sets the crop for a zoom factor, and returns the factor that the driver granted.
  ///
  /// Nil if the driver rejects the crop, ignores it, or changes the frame size.
  private func set(
    _ original: CropRectangle, _ factor: Double, size: (width: UInt32, height: UInt32)
  ) -> Double? {
    let wanted = original.middle(factor)
    guard let granted = try? queue.setCrop(wanted), granted.width > 0, granted.height > 0,
      let format = try? queue.currentFormat(), (format.width, format.height) == size,
      factor < Self.certainFactor || granted.width < original.width
    else { return nil }
    return Double(original.width) / Double(granted.width)
  }
}

extension CropRectangle {
  /// The centered part of this rectangle that a zoom factor shows.
  fileprivate func middle(_ factor: Double) -> CropRectangle {
    let (width, height) = (
      max(1, UInt32((Double(self.width) / factor).rounded())),
      max(1, UInt32((Double(self.height) / factor).rounded()))
    )
    return CropRectangle(
      // The additions wrap, because a driver may report any rectangle.
      left: left &+ Int32((self.width - min(width, self.width)) / 2),
      top: top &+ Int32((self.height - min(height, self.height)) / 2), width: width,
      height: height)
  }
}
