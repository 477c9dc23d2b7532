// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// The facts about a machine that decide whether a capture works and loses no frames.
///
/// The checks depend only on these values, so tests can simulate any fault.
struct SystemState {
  /// A camera or microphone.
  struct Device {
    var address: String
    var name: String
    var isCamera: Bool
    /// Whether the device is hardware, and not the synthetic camera or a file.
    var isHardware: Bool
    /// The reason why the device could not be queried; nil if the query succeeded.
    var problem: String?
    var diagnosis = DeviceDiagnosis()
    /// The fastest mode and the resources that recording it needs; nil if the modes could not be
    /// read.
    var fastest: Mode?
  }

  /// A camera mode and the resources that recording it needs.
  struct Mode {
    var id: String
    var demand: RecordingDemand
  }

  /// The disk that contains the directory of the recordings.
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
  /// Whether the user named the device to check.
  ///
  /// The synthetic camera is only examined if the user names it.
  var isForNamedDevice = false
  /// Warnings about device nodes that could not be queried and are therefore not listed.
  var warnings: [String]
  var disk: Disk
  var availableMemory: Int64
  var clock: ClockSource
  /// Whether the system allows real-time priority for threads of this user.
  var allowsRealTime: Bool
  var requiredEncoders: [String]
  var missingEncoders: [String]
  /// The programs of optional packages that are not installed.
  var missingPrograms: [String]

  /// The devices to examine.
  var examined: [Device] { devices.filter { $0.isHardware || isForNamedDevice } }

  var cameras: [Device] { examined.filter(\.isCamera) }
}
