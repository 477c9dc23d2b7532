// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem

/// A program that has a device node open.
package struct DeviceHolder: Hashable, Sendable, CustomStringConvertible {
  /// The process ID.
  package let process: Int32
  /// The program's name from /proc/PID/comm, at most 15 bytes.
  package let name: String

  package init(process: Int32, name: String) {
    (self.process, self.name) = (process, name)
  }

  /// The program in the form `firefox (process 123)`.
  package var description: String { "\(name) (process \(process))" }

  /// Finds other programs that have a node open.
  ///
  /// A process is found only if this user may read its `/proc/PID/fd`, which is normally true for
  /// the user's own processes. A program that has the node open does not necessarily stream.
  ///
  /// - Parameters:
  ///   - path: The node. Symbolic links are followed.
  ///   - limit: The maximum number of programs.
  /// - Returns: The programs in order of process ID, without this process.
  package static func find(of path: String, limit: Int = 3) -> [DeviceHolder] {
    guard let node = SystemFiles.resolved(path) else { return [] }
    let own = getpid()
    var holders: [DeviceHolder] = []
    for process in SystemFiles.entries(in: "/proc").compactMap({ Int32($0) }).sorted() {
      guard holders.count < limit else { break }
      let directory = "/proc/\(process)"
      guard process != own,
        // The symbolic link of a descriptor is read but not followed, because following it could
        // block on a hanging network file system.
        SystemFiles.entries(in: "\(directory)/fd").contains(where: {
          SystemFiles.linkTarget("\(directory)/fd/\($0)") == node
        })
      else { continue }
      let name = SystemFiles.firstLine(of: "\(directory)/comm") ?? "a program"
      holders.append(DeviceHolder(process: process, name: name))
    }
    return holders
  }
}
