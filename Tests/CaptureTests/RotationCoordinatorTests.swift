// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankDeviceDiscovery
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCapture

/// Claims about the angles that show frames level with the horizon.
struct RotationCoordinatorTests {
  @Test func `The capture angle follows device rotation and camera mount`() throws {
    let upright = CaptureDevice.RotationCoordinator(
      device: try CaptureDevice.named("synthetic:128x96@60"), sensors: "/nowhere")
    let table: [(device: Int, capture: Int)] = [
      (0, 0), (90, 90), (180, 180), (270, 270), (-90, 270),
    ]
    for row in table {
      upright.deviceRotationAngle = row.device
      #expect(upright.videoRotationAngleForHorizonLevelCapture == row.capture)
      #expect(upright.videoRotationAngleForHorizonLevelPreview == 0)
    }
    #expect(!upright.followAccelerometer())
    // If the desktop rotates with the device, the preview needs the rotation that the capture has.
    upright.deviceRotationAngle = 90
    upright.interfaceRotationAngle = 270
    #expect(upright.videoRotationAngleForHorizonLevelPreview == 90)

    // The sensor of this module is mounted at 270 degrees counterclockwise. The front camera faces
    // the user.
    for (name, mounted, sign) in [("sensor-module", 90, 1), ("stepwise-sensor", 0, -1)] {
      let machine = try FakeVideoSystemCalls(name)
      let device = try DeviceSystem.$calls.withValue(machine) {
        try #require(CaptureDevice.discover().first { $0.kind == .v4l2 })
      }
      let coordinator = CaptureDevice.RotationCoordinator(device: device, sensors: "/nowhere")
      #expect(coordinator.videoRotationAngleForHorizonLevelCapture == mounted)
      coordinator.deviceRotationAngle = 90
      #expect(
        coordinator.videoRotationAngleForHorizonLevelCapture == (mounted + 90 * sign + 360) % 360)
      #expect(coordinator.videoRotationAngleForHorizonLevelPreview == mounted)
    }
  }

  @Test func `The accelerometer sets the rotation with hysteresis`() async throws {
    let scratch = try Scratch()
    let sensor = scratch.file("iio:device0")
    try FileManager.default.createDirectory(atPath: sensor, withIntermediateDirectories: true)
    func set(_ x: Int, _ y: Int, _ z: Int) throws {
      for (axis, value) in [("x", x), ("y", y), ("z", z)] {
        try "\(value)\n".write(
          toFile: "\(sensor)/in_accel_\(axis)_raw", atomically: true, encoding: .utf8)
      }
    }
    try set(0, 1000, 0)
    let coordinator = CaptureDevice.RotationCoordinator(
      device: try CaptureDevice.named("synthetic:128x96@60"), sensors: scratch.path)
    let changes = coordinator.changes
    let table: [(x: Int, y: Int, z: Int, angle: Int)] = [
      (0, 1000, 0, 0), (-1000, 0, 0, 90), (0, -1000, 0, 180), (1000, 0, 0, 270),
      // A rotation changes only after 60 degrees. 50 degrees are not enough.
      (643, 766, 0, 270), (500, 866, 0, 0),
      // On a device that lies flat on a table, the last angle stays.
      (-300, 100, 1000, 0), (-1000, 0, 400, 90),
    ]
    for row in table {
      try set(row.x, row.y, row.z)
      #expect(coordinator.followAccelerometer())
      #expect(coordinator.videoRotationAngleForHorizonLevelCapture == row.angle, "\(row)")
    }
    var reported: [Int] = []
    for await angle in changes {
      reported.append(angle)
      if reported.count == 5 { break }
    }
    #expect(reported == [90, 180, 270, 0, 90])

    // This accelerometer is mounted at 90 degrees.
    try "0, -1, 0; 1, 0, 0; 0, 0, 1\n".write(
      toFile: "\(sensor)/in_accel_mount_matrix", atomically: true, encoding: .utf8)
    try set(1000, 0, 0)
    let remounted = CaptureDevice.RotationCoordinator(
      device: try CaptureDevice.named("synthetic:128x96@60"), sensors: scratch.path)
    remounted.deviceRotationAngle = 180
    #expect(remounted.followAccelerometer() && remounted.deviceRotationAngle == 0)
    try FileManager.default.removeItem(atPath: "\(sensor)/in_accel_z_raw")
    #expect(!remounted.followAccelerometer())
  }
}
