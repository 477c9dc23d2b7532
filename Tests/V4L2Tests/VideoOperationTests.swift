// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLinuxSystem
import OvercrankMediaCore
import Testing

@testable import OvercrankV4L2

/// The error messages about devices that cannot be used.
struct VideoOperationTests {
  @Test(
    "A device error names what failed and why and what to do",
    arguments: [
      (
        CallFailure(.open, "/dev/video99", code: ENOENT),
        "could not open /dev/video99: No such file or directory",
        Recovery("choose a device that is listed", .listDevices)
      ),
      (
        CallFailure(.open, "/dev/video0", code: EACCES),
        "could not open /dev/video0: Permission denied",
        Recovery(
          "add yourself to the group video (sudo usermod -aG video $USER) and log in again",
          .diagnose(device: "/dev/video0"))
      ),
      (
        CallFailure(.open, "/dev/video0", code: EPERM),
        "could not open /dev/video0: Operation not permitted",
        Recovery(
          "add yourself to the group video (sudo usermod -aG video $USER) and log in again",
          .diagnose(device: "/dev/video0"))
      ),
      (
        CallFailure(
          .setFormat, "/dev/video0", code: EBUSY,
          holders: [
            DeviceHolder(process: 123, name: "firefox"), DeviceHolder(process: 7, name: "obs"),
          ]),
        "could not set the format of /dev/video0: Device or resource busy",
        Recovery(
          "firefox (process 123), obs (process 7) has the device open; close that first",
          .diagnose(device: "/dev/video0"))
      ),
      (
        CallFailure(.setFormat, "/dev/video0", code: EBUSY),
        "could not set the format of /dev/video0: Device or resource busy",
        Recovery(
          "close the program that uses it; sudo fuser -v /dev/video0 shows which one",
          .diagnose(device: "/dev/video0"))
      ),
      (
        CallFailure(.dequeue, "/dev/video0", code: ENODEV),
        "could not take a frame from /dev/video0: No such device",
        "plug the device in again; it was unplugged, or its driver was unloaded"
      ),
      (
        CallFailure(.start, "/dev/video0", code: ENOSPC),
        "could not start /dev/video0: the bus has no bandwidth left for this mode",
        "choose a compressed or slower mode, or another USB port"
      ),
      (
        CallFailure(.setFrameDuration, "/dev/video0", code: ENOTSUP),
        "could not set the frame duration of /dev/video0: Operation not supported",
        Recovery("choose another format", .listFormats(device: "/dev/video0"))
      ),
      (
        CallFailure(.detectTimings, "/dev/video0", code: ENOLINK),
        "could not detect the timings at /dev/video0: the input has no signal",
        Recovery(
          "check the cable, and that the source is switched on",
          .listFormats(device: "/dev/video0"))
      ),
      (
        CallFailure(.detectTimings, "/dev/video0", code: ENOLCK),
        "could not detect the timings at /dev/video0: the signal is not stable",
        "try again in a moment, or with another cable"
      ),
      (
        CallFailure(.detectTimings, "/dev/video0", code: ERANGE),
        "could not detect the timings at /dev/video0: "
          + "the signal is outside the range of the device",
        "choose a smaller size or a lower rate at the source"
      ),
      (
        CallFailure(.requestBuffers, "/dev/video0", code: ENOMEM),
        "could not get buffers from /dev/video0: Cannot allocate memory",
        "close other programs, or choose a smaller mode"
      ),
      (
        CallFailure(.setFrameDuration, "/dev/video0", code: EPIPE),
        "could not set the frame duration of /dev/video0: "
          + "the camera does not answer on its bus (Broken pipe)",
        "try another cable or port, without a hub, and a slower mode"
      ),
      (
        CallFailure(.open, "/dev/video0", code: EMFILE),
        "could not open /dev/video0: Too many open files",
        "close other programs, or allow more open files with: ulimit -n 4096"
      ),
      (
        CallFailure(.setPriority, "/dev/video0", code: EBUSY),
        "could not set the priority on /dev/video0: another program has a higher priority",
        Recovery(
          "close the program that uses it; sudo fuser -v /dev/video0 shows which one",
          .diagnose(device: "/dev/video0"))
      ),
      (
        CallFailure(.dequeue, "/dev/video0", code: EIO),
        "could not take a frame from /dev/video0: Input/output error",
        "unplug the device and plug it in again; sudo dmesg shows the kernel's messages"
      ),
    ] as [(CallFailure, String, Recovery)])
  func wording(error: CallFailure, message: String, recovery: Recovery) {
    #expect(error.description == message)
    #expect(error.recovery == recovery)
  }

  @Test(
    "The error for opening a device that is no camera says why",
    arguments: [
      ("/dev/video-none", CallFailure.Kind.notFound, "No such file or directory"),
      ("/dev/null/video0", .notFound, "Not a directory"),
      ("/dev/null", .notVideoDevice, "it is not a video device"),
    ])
  func opening(path: String, kind: CallFailure.Kind, why: String) throws {
    let error = try #require(throws: CallFailure.self) { _ = try VideoDevice(opening: path) }
    #expect(error.operation == VideoOperation.open.rawValue)
    #expect(error.subject == path)
    #expect(error.kind == kind)
    #expect(error.description == "could not open \(path): \(why)")
  }

  @Test func `A device that fails to open leaves no file descriptor open`() throws {
    // Other tests open files at the same time, so only descriptors of this node are counted.
    func openNodes() -> Int {
      SystemFiles.entries(in: "/proc/self/fd")
        .filter { SystemFiles.linkTarget("/proc/self/fd/\($0)") == "/dev/random" }.count
    }
    for _ in 0..<20 {
      #expect(throws: CallFailure.self) { _ = try VideoDevice(opening: "/dev/random") }
    }
    #expect(openNodes() == 0)
  }

  @Test func `Messages of libv4l2 do not reach standard error`() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      _ = try? VideoDevice(opening: "/dev/null")
    }
    #expect(String(decoding: result.standardErrorContent, as: UTF8.self) == "")
  }
}

/// Finding the processes that have a device open.
struct DeviceHolderTests {
  @Test func `Finds the other process that has a device open`() throws {
    let path = "/tmp/holder-\(UUID().uuidString)"
    #expect(FileManager.default.createFile(atPath: path, contents: nil))
    let own = try #require(FileHandle(forReadingAtPath: path))
    defer {
      try? own.close()
      try? FileManager.default.removeItem(atPath: path)
    }
    // Other tests may start programs at the same time, which inherit the open file for a moment.
    #expect(!DeviceHolder.find(of: path, limit: 100).map(\.process).contains(getpid()))

    let other = Process()
    other.executableURL = URL(fileURLWithPath: "/usr/bin/tail")
    other.arguments = ["-f", "/dev/null"]
    other.standardInput = own
    try other.run()
    defer {
      // Test threads block SIGTERM, and child processes inherit that.
      kill(other.processIdentifier, SIGKILL)
      other.waitUntilExit()
    }
    let holders = DeviceHolder.find(of: path, limit: 100)
    #expect(holders.map(\.process).contains(other.processIdentifier))
  }

  @Test func `The search for users of a missing device finds no process`() {
    #expect(DeviceHolder.find(of: "/dev/video-none") == [])
  }
}

/// Text that a driver wrote into a field of fixed size.
struct DriverTextTests {
  @Test(
    "A driver string ends at a zero byte or at the field size",
    arguments: [
      ([0x75, 0x76, 0x63, 0, 0x78], "uvc"), ([0x75, 0x76, 0x63], "uvc"), ([], ""), ([0, 0x75], ""),
      ([0x75, 0xff, 0x76], "u\u{fffd}v"),
    ] as [([UInt8], String)])
  func text(bytes: [UInt8], expected: String) {
    #expect(bytes.withUnsafeBytes(SystemFiles.text) == expected)
  }
}
