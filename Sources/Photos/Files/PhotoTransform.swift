// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
package import OvercrankLibAV

/// The rotation, mirroring and zoom of a photo.
struct PhotoTransform: Sendable {
  var rotation = FrameRotation.none
  /// The factor by which the center of the image is enlarged.
  var factor = 1.0

  static let none = PhotoTransform()
}

extension FrameRotation {
  /// The value of Exif's field `Orientation`; nil if the image is not rotated or mirrored.
  ///
  /// Viewers apply this rotation, so JPEG data need not be encoded again.
  package var exifOrientation: Int? {
    switch (isTransposed, flipsX, flipsY) {
    case (false, false, false): nil
    case (false, true, false): 2
    case (false, true, true): 3
    case (false, false, true): 4
    case (true, false, false): 5
    case (true, true, false): 6
    case (true, true, true): 7
    case (true, false, true): 8
    }
  }
}
