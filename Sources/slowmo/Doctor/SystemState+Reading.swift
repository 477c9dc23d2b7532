// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

extension SystemState {
  /// Reads the state of this machine.
  ///
  /// Writes up to 64 MiB to an unlinked file in the directory, opens each device briefly, and blocks.
  ///
  /// - Parameters:
  ///   - named: The only device to examine; nil to examine all devices.
  ///   - directory: The directory of the recordings.
  init(of named: Device?, directory: String) {
    let list = named == nil ? CaptureDevice.discover() : nil
    versions =
      ["slowmo \(OvercrankVersion.number)", Machine.kernel]
      + LinkedLibraries.versions.map { "\($0.name) \($0.version)" }
    user = .current()
    devices = named.map { [$0] } ?? (list?.devices ?? []).map(Device.init)
    isForNamedDevice = named != nil
    // Leaves out the warnings about devices in the list, because the entry of such a device
    // contains the problem.
    warnings = (list?.warnings ?? []).filter { warning in
      !(list?.devices ?? []).contains { $0.problem.map(warning.hasPrefix) ?? false }
    }
    disk = Disk(measuring: directory)
    availableMemory = Int64(RecordingMemory.availableBytes())
    clock = ClockSource()
    allowsRealTime = Self.allowsRealTime()
    requiredEncoders = Asset.requiredEncoders
    missingEncoders = Asset.missingEncoders
    missingPrograms = Self.missingPrograms(
      besides: SystemFiles.linkTarget("/proc/self/exe") ?? "")
  }

  /// Whether the system grants a new thread real-time priority.
  private static func allowsRealTime() -> Bool {
    let isGranted = Flag()
    let thread = try? BlockingThread(urgency: .realTime) {
      // `BlockingThread` sets the priority after the thread has started, and ignores a refusal. So
      // the thread requests the priority itself.
      var parameters = sched_param(sched_priority: 10)
      if pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) == 0 { isGranted.set() }
    }
    thread?.join()
    return isGranted.isSet
  }

  /// Returns the optional programs that are neither in the directory of the given program nor in
  /// `../libexec/overcrank` from there.
  static func missingPrograms(besides program: String) -> [String] {
    FullProgram.path(besides: program) == nil ? [FullProgram.name] : []
  }
}

extension SystemState.Device {
  init(_ device: CaptureDevice) {
    address = device.address
    name = device.name
    isCamera = device.media.contains(.video)
    isHardware = device.kind == .v4l2 || device.kind == .alsa
    problem = device.problem
    diagnosis = device.diagnosis()
    if isCamera, problem == nil, let format = try? device.fastestFormat() {
      fastest = SystemState.Mode(id: format.id, demand: RecordingDemand(format))
    }
  }
}

extension SystemState.Device {
  /// Finds a device by name.
  ///
  /// A device that this user may not open, or that another program uses, is described as well.
  ///
  /// - Throws: `MediaError` as `CaptureDevice.named(_:)` does.
  init(named name: String) throws(MediaError) {
    do throws(MediaError) {
      self.init(try CaptureDevice.named(name))
    } catch {
      guard error.code == .noPermission || error.code == .deviceBusy else { throw error }
      self.init(address: name, name: "unknown", isCamera: true, isHardware: true)
      diagnosis.isForbidden = error.code == .noPermission
      diagnosis.isStreamingElsewhere = error.code == .deviceBusy
      diagnosis.permittedGroup = SystemFiles.permittedGroup(name)
    }
  }
}

extension SystemState.Disk {
  /// Measures the write speed of the disk that contains a directory.
  ///
  /// Other programs may use the disk, so the best of up to three measurements counts.
  init(measuring directory: String) {
    let path = "\(directory)/take.mov"
    self.directory = directory
    isWritable = access(directory.systemPath, W_OK | X_OK) == 0
    freeBytes = FreeSpace.bytes(at: path)
    for _ in 0..<3 where isWritable {
      guard let speed = DiskProbe.bytesPerSecond(besides: path) else { break }
      bytesPerSecond = max(bytesPerSecond ?? 0, speed)
      if speed > 100_000_000 { break }
    }
  }
}

extension SystemState.ClockSource {
  /// Reads the system's clock source.
  ///
  /// - Parameter root: The directory that contains `sys`. Tests pass their own.
  init(root: String = "") {
    let directory = "\(root)/sys/devices/system/clocksource/clocksource0"
    current = SystemFiles.firstLine(of: "\(directory)/current_clocksource")
    available =
      SystemFiles.firstLine(of: "\(directory)/available_clocksource")?
      .split(separator: " ").map(String.init) ?? []
  }
}

/// A value that one thread sets and another thread reads after the first has ended.
private final class Flag: Sendable {
  private let value = Mutex(false)

  func set() { value.withLock { $0 = true } }
  var isSet: Bool { value.withLock { $0 } }
}
