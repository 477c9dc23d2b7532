// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem

/// A program that has a device node open.
package struct DeviceHolder: Hashable, Sendable, CustomStringConvertible {
  /// The process number.
  package let process: Int32
  /// The program's name as the kernel keeps it, at most 15 bytes.
  package let name: String

  package init(process: Int32, name: String) {
    self.process = process
    self.name = name
  }

  /// The program as `firefox (process 123)`.
  package var description: String { "\(name) (process \(process))" }

  /// Looks for the other programs that have a node open.
  ///
  /// Only what `/proc/PID/fd` lets this user see is found: normally his own programs. One that
  /// has the node open need not be the one that streams.
  ///
  /// - Parameters:
  ///   - path: The node; links are followed.
  ///   - limit: The most programs to name.
  /// - Returns: The programs by their process number, without this one.
  package static func find(of path: String, limit: Int = 3) -> [DeviceHolder] {
    guard let node = SystemFiles.resolved(path) else { return [] }
    let own = getpid()
    var holders: [DeviceHolder] = []
    for process in SystemFiles.entries(in: "/proc").compactMap({ Int32($0) }).sorted() {
      guard holders.count < limit else { break }
      let folder = "/proc/\(process)"
      guard process != own,
        // The link is only read, never followed: behind it may be a server that hangs.
        SystemFiles.entries(in: "\(folder)/fd").contains(where: {
          SystemFiles.linkTarget("\(folder)/fd/\($0)") == node
        })
      else { continue }
      let name = SystemFiles.firstLine(of: "\(folder)/comm") ?? "a program"
      holders.append(DeviceHolder(process: process, name: name))
    }
    return holders
  }
}
