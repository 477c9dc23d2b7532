// SPDX-License-Identifier: Apache-2.0

/// The camera settings that a capture makes before its photos.
struct PhotoPreparation {
  /// The controls that set exposure and light; nil if they stay unchanged.
  var controls: PhotoControls?
  /// The mode for the photos; nil for the mode of the stream.
  var stillMode: StillMode?

  var isEmpty: Bool { controls == nil && stillMode == nil }
}
