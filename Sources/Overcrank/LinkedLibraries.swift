// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankRetiming

/// The versions of the third-party libraries that the process has loaded.
public enum LinkedLibraries {
  /// The name and version of each library.
  public static var versions: [LibraryVersion] {
    Asset.libraryVersions + [AudioRetimer.libraryVersion, CaptureDevice.audioLibraryVersion]
  }
}
