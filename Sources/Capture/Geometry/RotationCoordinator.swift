// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

extension CaptureDevice {
  /// Computes the rotation angles at which a camera's frames are level with the horizon.
  ///
  /// The angles depend on how the sensor is mounted (`V4L2_CID_CAMERA_SENSOR_ROTATION`), on the
  /// direction that the camera faces, and on how the device is held. A program sets
  /// ``deviceRotationAngle`` itself, or calls ``followAccelerometer()`` to measure it.
  ///
  /// ```swift
  /// let camera = try CaptureDevice.named("synthetic:640x480@240")
  /// let coordinator = CaptureDevice.RotationCoordinator(device: camera)
  /// coordinator.followAccelerometer()
  /// print(coordinator.videoRotationAngleForHorizonLevelCapture)
  /// ```
  ///
  /// All calls may come from any thread.
  public final class RotationCoordinator: Sendable {
    /// The camera whose rotation angles are computed.
    public let device: CaptureDevice
    private let accelerometer: Accelerometer?
    private let state = Mutex(State())
    private let hub = EventHub<Int>()

    private struct State {
      var deviceAngle = 0
      var interfaceAngle = 0
      var followers: [Follower] = []
    }

    /// A connection that the coordinator rotates.
    private struct Follower {
      weak var geometry: ConnectionGeometry?
      /// The camera of the connection, which may be another one than the coordinator's.
      let camera: CaptureDevice
      let isPreview: Bool
    }

    /// Creates a coordinator for a device in its normal orientation.
    public convenience init(device: CaptureDevice) {
      self.init(device: device, sensors: "/sys/bus/iio/devices")
    }

    /// Creates a coordinator with a directory of industrial I/O devices.
    package init(device: CaptureDevice, sensors: String) {
      self.device = device
      accelerometer = Accelerometer(in: sensors)
    }

    /// The clockwise rotation of the device from its normal orientation in degrees, as seen by a
    /// user in front of its screen.
    ///
    /// 0, 90, 180 or 270. Other values are rounded to the nearest of them.
    public var deviceRotationAngle: Int {
      get { state.withLock { $0.deviceAngle } }
      set {
        let angle = Self.nearestRightAngle(Double(newValue))
        let (before, after) = state.withLock { state in
          let before = captureAngle(state.deviceAngle)
          state.deviceAngle = angle
          return (before, captureAngle(angle))
        }
        if before != after { hub.send(after) }
        rotateFollowers()
      }
    }

    /// The clockwise rotation of the user interface on the screen in degrees.
    ///
    /// A desktop that turns with the device rotates its interface by the opposite of
    /// ``deviceRotationAngle``. Default: 0.
    public var interfaceRotationAngle: Int {
      get { state.withLock { $0.interfaceAngle } }
      set {
        state.withLock { $0.interfaceAngle = Self.nearestRightAngle(Double(newValue)) }
        rotateFollowers()
      }
    }

    /// The rotation for ``CaptureConnection/setVideoRotationAngle(_:)`` with which photos and movies
    /// are level with the horizon.
    public var videoRotationAngleForHorizonLevelCapture: Int { captureAngle(deviceRotationAngle) }

    /// The rotation with which frames in the user interface are level with the horizon.
    ///
    /// The screen turns with the camera, so only the rotation of the interface is undone.
    public var videoRotationAngleForHorizonLevelPreview: Int {
      captureAngle(-interfaceRotationAngle)
    }

    /// Each new value of ``videoRotationAngleForHorizonLevelCapture`` after this call.
    public var changes: some AsyncSequence<Int, Never> & Sendable { hub.events() }

    /// Reads the accelerometer and sets ``deviceRotationAngle`` to the measured angle.
    ///
    /// The angle changes only if the device is rotated by more than 55 degrees from the current
    /// angle, and not while the device lies flat. Call this each time the angle is needed.
    ///
    /// - Returns: Whether the device has an accelerometer that can be read.
    @discardableResult
    public func followAccelerometer() -> Bool {
      guard let reading = accelerometer?.read() else { return false }
      if let angle = reading.angle {
        let difference = abs(
          (angle - Double(deviceRotationAngle) + 540)
            .truncatingRemainder(dividingBy: 360) - 180)
        if difference > 55 { deviceRotationAngle = Self.nearestRightAngle(angle) }
      }
      return true
    }

    /// Rotates the frames of a connection from now on, as long as the coordinator exists.
    func follow(_ connection: CaptureConnection) {
      let geometry = connection.geometry
      geometry.coordinator = self
      state.withLock { state in
        state.followers.removeAll { $0.geometry == nil || $0.geometry === geometry }
        state.followers.append(
          Follower(
            geometry: geometry, camera: connection.input.device, isPreview: connection.isPreview))
      }
      rotateFollowers()
    }

    private func rotateFollowers() {
      let followers = state.withLock { state in
        state.followers.removeAll { $0.geometry?.coordinator !== self }
        return state.followers
      }
      for follower in followers {
        let deviceAngle = follower.isPreview ? -interfaceRotationAngle : deviceRotationAngle
        let angle = Self.captureAngle(of: follower.camera, deviceAngle)
        follower.geometry?.change { $0.angle = angle }
      }
    }

    private func captureAngle(_ deviceAngle: Int) -> Int {
      Self.captureAngle(of: device, deviceAngle)
    }

    /// The rotation with which a camera's frames are level.
    private static func captureAngle(of device: CaptureDevice, _ deviceAngle: Int) -> Int {
      // As seen by a camera that faces the user, the device rotates in the opposite direction.
      let turn = device.position == .front ? -deviceAngle : deviceAngle
      let mounted = Int(device.videoRotationAngleForHorizonLevelCapture)
      return ((mounted + turn) % 360 + 360) % 360
    }

    private static func nearestRightAngle(_ angle: Double) -> Int {
      let quarters = Int((angle / 90).rounded()) % 4
      return (quarters + 4) % 4 * 90
    }
  }
}

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
