// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import TestSupport
import Testing

/// The memory limits of control groups, read from a directory that replaces `/`.
struct ControlGroupTests {
  private let root: Scratch

  init() throws { root = try Scratch() }

  private func write(_ text: String, _ path: String) throws {
    try root.writeSystemFile(text, path)
  }

  @Test func `The memory left is the minimum over a cgroup and its parents`() throws {
    try write("0::/user.slice/session.scope\n", "proc/self/cgroup")
    #expect(ControlGroup.memoryLeft(root: root.path) == nil)
    for (directory, limit, usage) in [
      ("sys/fs/cgroup/user.slice/session.scope", "max", "5000"),
      ("sys/fs/cgroup/user.slice", "100000", "40000"),
    ] {
      try write("\(limit)\n", "\(directory)/memory.max")
      try write("\(usage)\n", "\(directory)/memory.current")
    }
    #expect(ControlGroup.memoryLeft(root: root.path) == 60_000)
    // The kernel frees cached files before it refuses memory.
    try write("anon 1\ninactive_file 10000\n", "sys/fs/cgroup/user.slice/memory.stat")
    #expect(ControlGroup.memoryLeft(root: root.path) == 70_000)
    try write("20000\n", "sys/fs/cgroup/user.slice/session.scope/memory.max")
    #expect(ControlGroup.memoryLeft(root: root.path) == 15_000)
  }

  @Test func `The memory limit of a container is read at the cgroup root`() throws {
    try write("0::/\n", "proc/self/cgroup")
    try write("1000\n", "sys/fs/cgroup/memory.max")
    try write("1200\n", "sys/fs/cgroup/memory.current")
    #expect(ControlGroup.memoryLeft(root: root.path) == 0)
  }

  @Test func `A cgroup v1 memory limit applies unless it is near 2^63`() throws {
    try write("3:cpu,cpuacct:/a\n7:memory:/a\n1:name=systemd:/a\n", "proc/self/cgroup")
    let directory = "sys/fs/cgroup/memory/a"
    try write("9223372036854771712\n", "\(directory)/memory.limit_in_bytes")
    try write("300\n", "\(directory)/memory.usage_in_bytes")
    #expect(ControlGroup.memoryLeft(root: root.path) == nil)
    try write("1000\n", "\(directory)/memory.limit_in_bytes")
    #expect(ControlGroup.memoryLeft(root: root.path) == 700)
  }
}
