// SPDX-License-Identifier: Apache-2.0

/// A photo before its image is encoded.
struct PhotoDraft {
  /// The photo without data, with the path that its file gets.
  let photo: Photo
  let metadata: ExifMetadata
  let transform: PhotoTransform
}
