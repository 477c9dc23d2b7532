// SPDX-License-Identifier: Apache-2.0

/// What a capture sets before its photos.
struct PhotoPreparation {
  /// The exposure and light of the camera, or nil.
  var controls: PhotoControls?
  /// The mode for the photos, or nil for that of the stream.
  var stillMode: StillMode?

  var isEmpty: Bool { controls == nil && stillMode == nil }
}
