// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankRetiming

/// The libraries that the process runs with.
public enum LinkedLibraries {
  /// Name and version of each.
  public static var versions: [(name: String, version: String)] {
    Asset.libraryVersions + [AudioRetimer.libraryVersion, CaptureDevice.audioLibraryVersion]
  }
}
