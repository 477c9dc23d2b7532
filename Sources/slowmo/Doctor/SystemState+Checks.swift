// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

extension SystemState {
  /// The results of all checks, ordered by the path of a frame from the camera to the disk.
  var checks: [SystemCheck] {
    [
      versionCheck, deviceCheck, permissionCheck, holderCheck, usbCheck, diskCheck, memoryCheck,
      clockCheck, schedulingCheck, codecCheck, componentCheck,
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
    let found = connected.compactMap { camera in
      camera.diagnosis.usb.map { link in
        let shared = connected.filter {
          $0.address != camera.address && $0.diagnosis.usb?.bus == link.bus
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
    return SystemCheck("usb", found)
  }
}

/// Returns a number of bytes in megabytes, for text.
func megabytes(_ bytes: Int64) -> String {
  bytes < 10_000_000
    ? "\(Double(bytes / 100_000) / 10) MB" : "\((bytes &+ 500_000) / 1_000_000) MB"
}
