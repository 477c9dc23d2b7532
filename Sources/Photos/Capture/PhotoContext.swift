// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// The state of the camera that is stored in the photos of a capture.
struct PhotoContext {
  /// The rotation of the connection to the camera when the photo was requested.
  var rotation = FrameRotation.none
  /// The value of Exif's field `Flash`, or nil if the camera has no light.
  var flash: Int?
}
