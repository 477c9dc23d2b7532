// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension Asset {
  /// The versions of the libraries that read and write movies.
  public static var libraryVersions: [LibraryVersion] { LibraryVersions.all }
}
