// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The accelerometer of a tablet or laptop, an industrial I/O device in `/sys`.
struct Accelerometer: Sendable {
  /// The acceleration against gravity, in the axes of the screen: x to the right, y up, z to the
  /// user.
  struct Reading: Equatable {
    var x: Double
    var y: Double
    var z: Double

    /// The clockwise rotation of the device in degrees, or nil while it lies flat.
    var angle: Double? {
      let inPlane = (x * x + y * y).squareRoot()
      // If the device is within 30 degrees of lying flat, its measured rotation is mostly noise.
      guard inPlane > 0, inPlane >= abs(z) * 0.577 else { return nil }
      let degrees = atan2(-x, y) * 180 / .pi
      return degrees < 0 ? degrees + 360 : degrees
    }
  }

  private let path: String
  /// The three rows of the matrix from the sensor's axes to the screen's.
  private let mounting: [[Double]]

  /// Finds the first accelerometer in a directory of industrial I/O devices.
  init?(in directory: String) {
    let devices = SystemFiles.entries(in: directory).sorted().map { directory + "/" + $0 }
    guard
      let path = devices.first(where: { SystemFiles.kind(of: $0 + "/in_accel_x_raw") == .regular })
    else { return nil }
    self.path = path
    mounting = Self.mounting(
      SystemFiles.firstLine(of: path + "/in_accel_mount_matrix")
        ?? SystemFiles.firstLine(of: path + "/mount_matrix") ?? "")
  }

  /// Parses a matrix such as `1, 0, 0; 0, 1, 0; 0, 0, 1`, which is also the default.
  private static func mounting(_ text: String) -> [[Double]] {
    let rows = text.split(separator: ";").map { row in
      row.split(separator: ",").compactMap { Double(String($0.filter { $0 != " " })) }
    }
    let isWhole = rows.count == 3 && rows.allSatisfy { $0.count == 3 }
    return isWhole ? rows : [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
  }

  /// Reads the three axes, or returns nil if the sensor cannot be read.
  func read() -> Reading? {
    let raw = ["x", "y", "z"].compactMap {
      SystemFiles.firstLine(of: "\(path)/in_accel_\($0)_raw").flatMap { Double($0) }
    }
    guard raw.count == 3 else { return nil }
    let axes = mounting.map { row in zip(row, raw).reduce(0) { $0 + $1.0 * $1.1 } }
    return Reading(x: axes[0], y: axes[1], z: axes[2])
  }
}
