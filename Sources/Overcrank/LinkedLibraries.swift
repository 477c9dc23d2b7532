// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankRetiming

/// The libraries that the process runs with.
public enum LinkedLibraries {
  /// Name and version of each.
  public static var versions: [LibraryVersion] {
    Asset.libraryVersions + [AudioRetimer.libraryVersion, CaptureDevice.audioLibraryVersion]
  }
}
