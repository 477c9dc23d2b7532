// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

extension Asset {
  /// Name and version of the libraries that read and write movies.
  public static var libraryVersions: [(name: String, version: String)] { LibraryVersions.all }
}
