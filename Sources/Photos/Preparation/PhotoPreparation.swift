// SPDX-License-Identifier: Apache-2.0

/// The settings that a capture makes on the camera before its photos.
struct PhotoPreparation {
  /// The exposure and light of the camera, or nil.
  var controls: PhotoControls?
  /// The mode for the photos, or nil for that of the stream.
  var stillMode: StillMode?

  var isEmpty: Bool { controls == nil && stillMode == nil }
}
