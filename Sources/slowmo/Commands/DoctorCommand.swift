// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// `slowmo doctor [DEVICE]`: checks what makes a recording fail or lose frames.
struct DoctorCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check what makes a recording fail or lose frames.",
    discussion: """
      EXAMPLES
        slowmo doctor
        slowmo doctor <DEVICE>
        slowmo doctor --directory /tmp --json

      Each check prints what was found, and how to fix or improve it. Without DEVICE, all devices
      are checked. The exit code is 10 if a check found a problem. No setting is changed.

      MANUAL
      The checks are versions, devices, permissions, holders (other programs that use a camera),
      usb, power (automatic suspension), driver (the settings of uvcvideo), exposure, disk, memory,
      clock, scheduling, codecs and components (optional programs that are missing). The speed of
      the disk is measured for up to a second, with a temporary file.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: Completions.device)
  var device: String?

  @Option(help: "The directory to record to. Default: the current one.", completion: .directory)
  var directory = "."

  @OptionGroup var common: CommonOptions

  var endsAtOnce: Bool { false }

  func perform() throws -> ExitStatus {
    let device = try self.device.map { name throws(MediaError) in
      try SystemState.Device(named: name)
    }
    guard SystemFiles.kind(of: self.directory) == .directory,
      let directory = SystemFiles.resolved(self.directory)
    else {
      throw CommandError(
        .noInput, code: "file_not_found", "no such directory: \(self.directory)",
        hint: "choose a directory that exists")
    }
    let document = DoctorDocument(
      device: device?.address, checks: SystemState(of: device, directory: directory).checks)
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return BrokenLimit.report(document.limits)
  }
}
