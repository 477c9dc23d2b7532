// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

extension DeviceInput {
  /// Prepares the driver for a stream: flips, stabilization and zoom.
  ///
  /// Call this while the stream is off.
  ///
  /// - Parameter connections: The connections that the stream starts with.
  func prepareGeometry(for connections: [CaptureConnection]) {
    let wanted = connections.filter { $0.mediaType == .video }.map(\.geometry.wanted)
    let flips =
      wanted.first.map { first in
        wanted.allSatisfy { $0 == first } ? first.flips(forDriverOf: delivery) : .none
      } ?? .none
    let isFlipped = flips != .none && driver.flip(flips)
    geometry.driverFlips.store(isFlipped ? flips.bits : 0, ordering: .releasing)
    if let isOn = connections.wantsStabilization { driver.stabilize(isOn) }
    restoreZoom()
  }
}

extension FrameRotation {
  /// The flips to request from the driver.
  ///
  /// None for a rotation by 90 or 270 degrees, because drivers then change the frame size or crop
  /// the image. None for a Bayer mosaic, because a flip would exchange the colors of its pixels.
  fileprivate func flips(forDriverOf delivery: FrameDelivery) -> FrameRotation {
    if case .raw(let format, _) = delivery.layout, format.isBayer { return .none }
    return isTransposed ? .none : self
  }
}
