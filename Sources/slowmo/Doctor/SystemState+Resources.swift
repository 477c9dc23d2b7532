// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

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
}
