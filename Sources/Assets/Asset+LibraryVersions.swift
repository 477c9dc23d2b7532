// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension Asset {
  /// The names of the FFmpeg encoders that recordings, exports and stills need.
  package static var requiredEncoders: [String] { RequiredEncoders.names }

  /// The required encoders that are missing in the linked FFmpeg.
  package static var missingEncoders: [String] { RequiredEncoders.missing }

  /// The versions of the libraries that read and write movies.
  public static var libraryVersions: [LibraryVersion] { LibraryVersions.all }
}
