// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// The facts about a machine that decide whether a capture works and loses no frames.
///
/// The checks are computed from these values alone, so tests can plant any fault.
struct SystemState {
  /// A camera or microphone.
  struct Device {
    var address: String
    var name: String
    var isCamera: Bool
    /// Whether it is hardware, not the synthetic camera or a file.
    var isHardware: Bool
    /// The reason why it could not be queried.
    var problem: String?
    var diagnosis = DeviceDiagnosis()
    /// The fastest mode and what recording it needs; nil if the modes could not be read.
    var fastest: Mode?
  }

  /// A mode of a camera.
  struct Mode {
    var id: String
    var demand: RecordingDemand
  }

  /// The directory of the recordings.
  struct Disk {
    var directory: String
    var isWritable: Bool
    /// The measured write speed; nil for a file system in memory, or if it could not be measured.
    var bytesPerSecond: Int64?
    var freeBytes: Int64?
  }

  /// The system's source of time.
  struct ClockSource {
    var current: String?
    var available: [String]
  }

  var versions: [String]
  var user: UserAccount
  var devices: [Device]
  /// Whether the user named the device.
  ///
  /// Otherwise the synthetic camera is not examined.
  var isForNamedDevice = false
  /// Warnings about nodes that could not be queried and are not listed.
  var warnings: [String]
  var disk: Disk
  var availableMemory: Int64
  var clock: ClockSource
  /// Whether a thread may have real-time priority.
  var allowsRealTime: Bool
  var requiredEncoders: [String]
  var missingEncoders: [String]
  /// The programs of optional packages that are not installed.
  var missingPrograms: [String]

  /// The devices to examine.
  var examined: [Device] { devices.filter { $0.isHardware || isForNamedDevice } }

  var cameras: [Device] { examined.filter(\.isCamera) }
}
