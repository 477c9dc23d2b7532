// SPDX-License-Identifier: Apache-2.0

/// A photo before its image is encoded.
struct PhotoDraft {
  /// The photo without its data, but with the path of its future file.
  let photo: Photo
  let metadata: ExifMetadata
  let transform: PhotoTransform
}
