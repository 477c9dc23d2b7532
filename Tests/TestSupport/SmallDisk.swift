// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file system of 2 MiB in memory.
package enum SmallDisk {
  package static let canBeMade: Bool = {
    guard getuid() == 0, let scratch = try? Scratch(), mount(at: scratch.path) else { return false }
    unmount(scratch.path)
    return true
  }()

  package static func mount(at path: String) -> Bool {
    Glibc.mount("tmpfs", path, "tmpfs", 0, "size=2m") == 0
  }

  package static func unmount(_ path: String) { umount2(path, Int32(MNT_DETACH)) }
}
