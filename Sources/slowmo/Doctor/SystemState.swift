// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

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
    /// The name of the driver.
    var driver = ""
    /// The manual exposure duration of a camera; nil for automatic exposure.
    var exposure: MediaTime?
    /// The fastest mode and the resources that recording it needs; nil if the modes could not be
    /// read.
    var fastest: Mode?

    /// The USB device, which is the same for all of its nodes; for any other device its address.
    fileprivate var usbDevice: String { diagnosis.usb?.directory ?? address }
  }

  /// A camera mode and the resources that recording it needs.
  struct Mode {
    var id: String
    var demand: RecordingDemand
    /// The shortest frame duration; nil if it is unknown.
    var frameDuration: MediaTime?
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
  /// The other USB cameras of the machine if the user named a device.
  ///
  /// They are not examined, but may share a bus with the device.
  var neighbors: [Device] = []
  /// Warnings about device nodes that could not be queried and are therefore not listed.
  var warnings: [String]
  var disk: Disk
  var availableMemory: Int64
  var clock: ClockSource
  /// Whether the driver of USB cameras delivers damaged frames, instead of dropping them; nil if it is
  /// not loaded.
  var deliversDamagedFrames: Bool?
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
    neighbors = named.map(Self.neighbors) ?? []
    // Leaves out the warnings about devices in the list, because the entry of such a device
    // contains the problem.
    warnings = (list?.warnings ?? []).filter { warning in
      !(list?.devices ?? []).contains { $0.problem.map(warning.hasPrefix) ?? false }
    }
    disk = Disk(measuring: directory)
    availableMemory = Int64(RecordingMemory.availableBytes())
    clock = ClockSource()
    deliversDamagedFrames = SystemFiles.firstLine(of: "/sys/module/uvcvideo/parameters/nodrop").map
    {
      $0 != "0"
    }
    allowsRealTime = Self.allowsRealTime()
    requiredEncoders = Asset.requiredEncoders
    missingEncoders = Asset.missingEncoders
    missingPrograms = Self.missingPrograms(
      besides: SystemFiles.linkTarget("/proc/self/exe") ?? "")
  }

  /// The USB cameras of the machine besides a device.
  private static func neighbors(of device: Device) -> [Device] {
    guard let own = device.diagnosis.usb else { return [] }
    return USBLink.ofCameras().sorted { $0.key < $1.key }.compactMap { node, link in
      guard link.directory != own.directory else { return nil }
      var camera = Device(
        address: "/dev/\(node)",
        name: SystemFiles.firstLine(of: "/sys/class/video4linux/\(node)/name") ?? node,
        isCamera: true, isHardware: true)
      camera.diagnosis.usb = link
      return camera
    }
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
    driver = device.driver
    diagnosis = device.diagnosis()
    guard isCamera, problem == nil else { return }
    if let format = try? device.fastestFormat() {
      fastest = SystemState.Mode(
        id: format.id, demand: RecordingDemand(format),
        frameDuration: format.maxFrameRate.frameDuration)
    }
    if let controls = try? CameraControls(device: device), (try? controls.exposureMode) == .custom {
      exposure = try? controls.exposureDuration
    }
  }

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

/// The checks of disk, memory, clock, scheduling and software.
extension SystemState {
  /// The camera whose fastest mode has the highest data rate, and this mode.
  private var mostDemanding: (camera: Device, mode: Mode)? {
    cameras.compactMap { camera in camera.fastest.map { (camera, $0) } }
      .max { $0.1.demand.bytesPerSecond < $1.1.demand.bytesPerSecond }
  }

  var diskCheck: SystemCheck {
    let free = disk.freeBytes.map { ", \(megabytes($0)) free" } ?? ""
    guard disk.isWritable else {
      return SystemCheck(
        "disk", ok: false, "\(disk.directory) is not writable",
        advice: "run the command in a directory that \(user.name) may write, or name one with "
          + "--directory")
    }
    let found =
      (disk.bytesPerSecond.map { "\(disk.directory) stores \(megabytes($0)) per second" }
        ?? "\(disk.directory) is in memory") + free
    // Without a camera, the disk is compared with a slow recording: 1080p at 30 fps.
    let needed = mostDemanding?.mode.demand.bytesPerSecond ?? 5_000_000
    let demand =
      mostDemanding.map { "\($0.mode.id) of \($0.camera.address)" } ?? "even a slow recording"
    if let speed = disk.bytesPerSecond, speed < needed {
      return SystemCheck(
        "disk", ok: false, "\(found); \(demand) needs about \(megabytes(needed)) per second",
        advice: "record to a faster disk or with a smaller --mode, or keep a short take in memory "
          + "with --burst")
    }
    if let free = disk.freeBytes, free / 60 < needed {
      return SystemCheck(
        "disk", ok: false, "\(found); \(demand) needs about \(megabytes(needed)) per second",
        advice: "free some space: less than one minute fits")
    }
    return SystemCheck("disk", found)
  }

  var memoryCheck: SystemCheck {
    let needed = (mostDemanding?.mode.demand.queueBytes ?? 32_000_000) + (64 << 20)
    let found = "\(megabytes(availableMemory)) available"
    guard availableMemory < needed else { return SystemCheck("memory", found) }
    return SystemCheck(
      "memory", ok: false, "\(found); a recording needs about \(megabytes(needed))",
      advice: "close other programs, or raise the memory limit (ulimit -v, or MemoryMax of the "
        + "service)")
  }

  var clockCheck: SystemCheck {
    guard let current = clock.current else { return SystemCheck("clock", "unknown") }
    let better = clock.available.first { ["tsc", "arch_sys_counter", "kvm-clock"].contains($0) }
    let advice =
      better.map {
        "echo \($0) | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
      } ?? "sudo dmesg | grep clocksource shows why the kernel rejected the processor's own clock"
    switch current {
    case "jiffies", "refined-jiffies":
      return SystemCheck(
        "clock", ok: false, "\(current), whose steps are longer than frames at high rates",
        advice: advice)
    case "hpet", "acpi_pm":
      return SystemCheck("clock", "\(current), which is slow to read", advice: advice)
    default: return SystemCheck("clock", current)
    }
  }

  var schedulingCheck: SystemCheck {
    allowsRealTime
      ? SystemCheck("scheduling", "the capture thread has real-time priority")
      : SystemCheck(
        "scheduling", "the capture thread has ordinary priority",
        advice: "echo '\(user.name) - rtprio 10' | sudo tee /etc/security/limits.d/overcrank.conf, "
          + "then log in again: losses become rarer on a busy machine")
  }

  var codecCheck: SystemCheck {
    guard !missingEncoders.isEmpty else {
      return SystemCheck("codecs", requiredEncoders.joined(separator: ", "))
    }
    return SystemCheck(
      "codecs", ok: false, "FFmpeg lacks \(missingEncoders.joined(separator: ", "))",
      advice: "sudo apt install --reinstall libavcodec59, Debian's build of FFmpeg")
  }

  var componentCheck: SystemCheck {
    missingPrograms.isEmpty
      ? SystemCheck("components", "slowmo-full is installed")
      : SystemCheck(
        "components", "\(missingPrograms.joined(separator: ", ")) is not installed",
        advice: "sudo apt install ./overcrank-full_*.deb")
  }

  /// The results of all checks, ordered by the path of a frame from the camera to the disk.
  var checks: [SystemCheck] {
    [
      versionCheck, deviceCheck, permissionCheck, holderCheck, usbCheck, powerCheck, driverCheck,
      exposureCheck, diskCheck, memoryCheck, clockCheck, schedulingCheck, codecCheck,
      componentCheck,
    ]
  }

  private var versionCheck: SystemCheck {
    SystemCheck("versions", versions.joined(separator: ", "))
  }

  private var deviceCheck: SystemCheck {
    let broken = devices.filter { $0.problem != nil && !$0.diagnosis.isForbidden }
    let problems = broken.compactMap(\.problem) + warnings
    guard problems.isEmpty else {
      return SystemCheck(
        "devices", ok: false, problems.joined(separator: ", "),
        advice: "unplug the device and plug it in again; sudo dmesg shows the kernel's messages")
    }
    guard !examined.isEmpty else {
      return SystemCheck("devices", "no camera and no microphone is plugged in")
    }
    return SystemCheck(
      "devices",
      examined.map { device in
        "\(device.address) (\(device.name)\(device.fastest.map { ", up to \($0.id)" } ?? ""))"
      }.joined(separator: ", "))
  }

  private var permissionCheck: SystemCheck {
    let forbidden = devices.filter(\.diagnosis.isForbidden)
    let groups = user.groups.sorted().joined(separator: ", ")
    guard !forbidden.isEmpty else {
      return SystemCheck("permissions", "\(user.name) may open every device; groups: \(groups)")
    }
    let wanted = Set(forbidden.compactMap(\.diagnosis.permittedGroup)).sorted()
    let stale = wanted.filter { user.memberships.contains($0) && !user.groups.contains($0) }
    let advice =
      wanted.isEmpty
      ? "add a udev rule that gives the group video access to the device: the package overcrank has one"
      : stale == wanted
        ? "log out and log in again: this session is older than the membership in "
          + stale.joined(separator: ", ")
        : "sudo usermod -aG \(wanted.joined(separator: ",")) \(user.name), then log in again"
    return SystemCheck(
      "permissions", ok: false,
      "\(user.name) may not open \(forbidden.map(\.address).joined(separator: ", ")); "
        + "groups: \(groups)", advice: advice)
  }

  private var holderCheck: SystemCheck {
    let busy = devices.filter(\.diagnosis.isStreamingElsewhere)
    guard busy.isEmpty else {
      let holders = busy.flatMap(\.diagnosis.holders)
      let nodes = busy.map(\.address).joined(separator: " ")
      return SystemCheck(
        "holders", ok: false,
        busy.map { device in
          let names = device.diagnosis.holders.joined(separator: ", ")
          return "\(device.address) streams in \(names.isEmpty ? "another program" : names)"
        }.joined(separator: ", "),
        advice: holders.isEmpty
          ? "close the program that uses it; sudo fuser -v \(nodes) shows which one"
          : "close \(holders.joined(separator: ", "))")
    }
    let open = devices.filter { !$0.diagnosis.holders.isEmpty }
    guard !open.isEmpty else { return SystemCheck("holders", "no other program streams") }
    return SystemCheck(
      "holders",
      open.map { "\($0.address) is open in \($0.diagnosis.holders.joined(separator: ", "))" }
        .joined(separator: ", ") + ", which does not stream")
  }

  private var usbCheck: SystemCheck {
    let connected = cameras.filter { $0.diagnosis.usb != nil }
    guard !connected.isEmpty else { return SystemCheck("usb", "no USB camera") }
    let present = connected + neighbors
    let found = connected.compactMap { camera in
      camera.diagnosis.usb.map { link in
        let shared = present.filter {
          $0.usbDevice != camera.usbDevice && $0.diagnosis.usb?.bus == link.bus
        }
        return "\(camera.address) at \(link.megabitsPerSecond) Mbit/s, at most "
          + "\(megabytes(link.maximumBytesPerSecond)) per second"
          + (shared.isEmpty
            ? "" : ", shared with \(shared.map(\.address).joined(separator: ", "))")
      }
    }.joined(separator: "; ")
    for camera in connected {
      guard let link = camera.diagnosis.usb else { continue }
      if link.megabitsPerSecond < 480 || link.supportsSuperSpeed && link.megabitsPerSecond < 5_000 {
        return SystemCheck(
          "usb", ok: false, found,
          advice: "plug \(camera.address) into a faster port (blue, or marked SS), without a hub, "
            + "and use its own cable")
      }
      if let mode = camera.fastest, let needed = mode.demand.transferBytesPerSecond,
        needed > link.maximumBytesPerSecond
      {
        return SystemCheck(
          "usb", ok: false, "\(found); \(mode.id) needs \(megabytes(needed)) per second",
          advice: "choose a compressed or smaller mode with --mode; slowmo modes \(camera.address) "
            + "lists them")
      }
    }
    return SystemCheck("usb", found, advice: sharedBusAdvice(connected, among: present))
  }

  /// The advice if one of these cameras and others on its bus, all of them isochronous, need more than
  /// its capacity together; nil otherwise.
  private func sharedBusAdvice(_ connected: [Device], among present: [Device]) -> String? {
    for camera in connected {
      guard let link = camera.diagnosis.usb, let budget = link.isochronousBudget else { continue }
      // A device may have several nodes, such as one for color and one for infrared. It counts once.
      var seen: Set<String> = []
      let sharing = present.filter {
        $0.diagnosis.usb?.bus == link.bus && $0.diagnosis.usb?.isochronousBytesPerSecond != nil
          && seen.insert($0.usbDevice).inserted
      }
      let total = sharing.reduce(0) { $0 + ($1.diagnosis.usb?.isochronousBytesPerSecond ?? 0) }
      guard sharing.count > 1, total > budget else { continue }
      return
        "plug \(sharing.map(\.address).joined(separator: " and ")) into ports of different USB "
        + "controllers to record with them at once"
    }
    return nil
  }

  private var powerCheck: SystemCheck {
    let suspended = cameras.filter { $0.diagnosis.usb?.suspensionSwitch != nil }
    guard let path = suspended.first?.diagnosis.usb?.suspensionSwitch else {
      return SystemCheck("power", "no camera is suspended while it is unused")
    }
    return SystemCheck(
      "power",
      "the kernel suspends \(suspended.map(\.address).joined(separator: ", ")) while no program uses "
        + "it",
      advice: "if the camera starts slowly or not at all: echo on | sudo tee \(path)")
  }

  private var driverCheck: SystemCheck {
    let usbCameras = cameras.filter { $0.driver == "uvcvideo" }
    guard let deliversDamagedFrames, !usbCameras.isEmpty else {
      return SystemCheck("driver", "no USB video camera")
    }
    let damaged =
      deliversDamagedFrames
      ? "uvcvideo delivers damaged frames (nodrop=1), which count as corrupt"
      : "uvcvideo drops damaged frames (nodrop=0), which count as lost_device"
    let coarse = usbCameras.filter { $0.diagnosis.usb?.isochronousBytesPerSecond != nil }
    guard !coarse.isEmpty else { return SystemCheck("driver", damaged) }
    return SystemCheck(
      "driver",
      "\(damaged); the times of \(coarse.map(\.address).joined(separator: ", ")) may advance in "
        + "steps of up to 4 ms, because the driver takes them when a transfer completes")
  }

  private var exposureCheck: SystemCheck {
    let known = cameras.filter { $0.exposure != nil }
    for camera in known {
      guard let exposure = camera.exposure, let mode = camera.fastest,
        let duration = mode.frameDuration, exposure > duration
      else { continue }
      return SystemCheck(
        "exposure",
        "\(camera.address) exposes for \(milliseconds(exposure)), longer than a frame of \(mode.id) "
          + "(\(milliseconds(duration)))",
        advice: "a recording shortens the exposure if the camera allows it; slowmo controls "
          + "\(camera.address) shows the exposure")
    }
    return SystemCheck(
      "exposure",
      known.isEmpty
        ? "automatic or unknown"
        : known.map { "\($0.address) exposes for \($0.exposure.map(milliseconds) ?? "")" }
          .joined(separator: ", "))
  }
}

/// Returns a time in milliseconds, for text.
private func milliseconds(_ time: MediaTime) -> String {
  "\(decimal(time.doubleValue * 1e3, 3)) ms"
}

/// Returns a number of bytes in megabytes, for text.
func megabytes(_ bytes: Int64) -> String {
  bytes < 10_000_000
    ? "\(Double(bytes / 100_000) / 10) MB" : "\((bytes &+ 500_000) / 1_000_000) MB"
}
