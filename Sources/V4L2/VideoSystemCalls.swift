// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The system calls that reach a driver: the kernel's, or those of a simulated driver.
///
/// Each call returns a value or a negative errno. These calls are the lowest layer, so tests can
/// run all code above them with a simulated clock and simulated faults.
package protocol VideoSystemCalls: Sendable {
  /// Opens a device node for reading and writing in nonblocking mode: open(2).
  func open(_ path: String) -> CInt

  /// Closes a descriptor: close(2).
  func close(_ descriptor: CInt) -> CInt

  /// Makes an ioctl request: ioctl(2).
  func control(_ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> CInt

  /// Waits for the given poll(2) events. Returns the events, or 0 after the timeout.
  func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt

  /// Maps driver memory: mmap(2). Returns nil and sets `error` on failure.
  func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer?

  /// Unmaps driver memory: munmap(2).
  func unmap(_ memory: UnsafeMutableRawBufferPointer)

  /// Detaches from an unplugged device. The descriptor and the mappings stay valid, but requests
  /// fail and the memory reads as zeros.
  ///
  /// A driver frees an unplugged device and its node number only after all users have released it.
  /// This call releases the device without closing the descriptor.
  func abandon(_ descriptor: CInt, _ memory: [UnsafeMutableRawBufferPointer])

  /// The current time of the clock of the driver's timestamps, in nanoseconds. For the kernel it is
  /// `CLOCK_MONOTONIC`.
  func nanoseconds() -> Int64

  /// Sleeps, on the clock of the driver's timestamps.
  func pause(milliseconds: Int64)

  /// The paths of the `/dev/video…` nodes, unsorted. Tests replace the list.
  func nodes() -> [String]

  /// The `/dev/v4l-subdev…` nodes of a camera's flash LEDs, in the order of its media device. Most
  /// cameras have none.
  func leds(of node: String) -> [String]

  /// Opens a subdevice node, which supports fewer requests than a camera node: open(2).
  func openSubdevice(_ path: String) -> CInt

  /// The handles of device nodes that the parts of this program share.
  var handles: SharedHandles { get }

  /// The directory that contains the device nodes and udev's `v4l` links.
  var nodeDirectory: String { get }
}

extension VideoSystemCalls {
  package var nodeDirectory: String { "/dev" }
  package func abandon(_ descriptor: CInt, _ memory: [UnsafeMutableRawBufferPointer]) {}
  package func pause(milliseconds: Int64) {
    MonotonicClock.sleep(
      untilMicroseconds: MonotonicClock.microseconds() + milliseconds * 1_000)
  }
  package func leds(of node: String) -> [String] { [] }
  package func openSubdevice(_ path: String) -> CInt { -ENOENT }
}

/// The system calls that newly opened devices use.
package enum DeviceSystem {
  /// The kernel's calls.
  ///
  /// A test replaces these calls with a simulated driver for its own Swift task.
  @TaskLocal package static var calls: any VideoSystemCalls = KernelVideoCalls()
}

/// The kernel's calls.
///
/// If a plugin of libv4l2 is active, the calls go through libv4l2, with its conversion disabled.
struct KernelVideoCalls: VideoSystemCalls {
  let nodeDirectory: String
  var handles: SharedHandles { .ofKernel }

  /// The sysfs directory with an entry for each video device node.
  private let classDirectory: String

  /// - Parameters:
  ///   - nodeDirectory: The directory to use instead of `/dev`.
  ///   - classDirectory: The directory to use instead of `/sys/class/video4linux`.
  init(nodeDirectory: String = "/dev", classDirectory: String = "/sys/class/video4linux") {
    (self.nodeDirectory, self.classDirectory) = (nodeDirectory, classDirectory)
  }

  func open(_ path: String) -> CInt {
    _ = Self.silencedLibrary
    let descriptor = CVideo4Linux_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return descriptor }
    // The capabilities are first queried from the kernel, before libv4l2 sees the node. Only a
    // suitable camera is attached to libv4l2, whose plugins print to stderr for other nodes.
    var answer = v4l2_capability()
    var result = withUnsafeMutablePointer(to: &answer) {
      CVideo4Linux_ioctl(descriptor, CVideo4Linux_VIDIOC_QUERYCAP, $0, false)
    }
    // Only single-planar cameras are attached to libv4l2. Its plugin for multi-planar nodes prints
    // to stdout, makes them look single-planar, and fails for formats with several planes. For
    // nodes that are not attached, libv4l2 passes requests to the kernel.
    let node = VideoDevice.Capabilities(answer)
    if result >= 0, node.isVideoCapture, node.bufferKind == .singlePlanar {
      result = CVideo4Linux_attach(descriptor)
      if CVideo4Linux_hasPlugin() { Self.usesPlugins.store(true, ordering: .relaxed) }
    }
    guard result >= 0 else {
      _ = CVideo4Linux_close(descriptor)
      return result
    }
    return descriptor
  }

  func leds(of node: String) -> [String] {
    parts(of: node, Self.entityNodes(CVideo4Linux_ENTITY_FLASH))
  }

  /// Finds the device nodes of certain entities, such as flash LEDs, in a camera's media device.
  ///
  /// A subdevice is not on the camera's bus. Only the media device (`MEDIA_IOC_ENUM_ENTITIES`)
  /// shows which subdevices belong to a camera.
  ///
  /// - Parameters:
  ///   - node: The camera's node.
  ///   - entities: Returns the device numbers (`major:minor`) of the wanted entities of the media
  ///     device at a path.
  /// - Returns: The paths of the entities' nodes. An entity without a visible node is left out.
  func parts(of node: String, _ entities: (String) -> [String]) -> [String] {
    let name = (SystemFiles.resolved(node) ?? node).lastPathComponent
    let media = SystemFiles.entries(in: "\(classDirectory)/\(name)/device").filter {
      $0.hasPrefix("media") && Int($0.dropFirst("media".count)) != nil
    }
    let numbers = media.sorted().flatMap { entities("\(nodeDirectory)/\($0)") }
    guard !numbers.isEmpty else { return [] }
    let names = Dictionary(
      SystemFiles.entries(in: classDirectory).compactMap { name in
        SystemFiles.firstLine(of: "\(classDirectory)/\(name)/dev").map { ($0, name) }
      }, uniquingKeysWith: { first, _ in first })
    return numbers.compactMap { names[$0] }.map { "\(nodeDirectory)/\($0)" }
  }

  /// Returns a query that lists a media device's entities with one function, such as a flash.
  static func entityNodes(_ function: UInt32) -> (String) -> [String] {
    { path in
      var found = [UInt32](repeating: 0, count: 2 * 64)
      let count = CVideo4Linux_entityNodes(path, function, &found, CInt(found.count / 2))
      return (0..<max(0, Int(count))).map { "\(found[2 * $0]):\(found[2 * $0 + 1])" }
    }
  }

  // The descriptor is not attached to libv4l2, so libv4l2 passes its requests to the kernel.
  func openSubdevice(_ path: String) -> CInt {
    CVideo4Linux_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
  }

  func close(_ descriptor: CInt) -> CInt { CVideo4Linux_close(descriptor) }

  func abandon(_ descriptor: CInt, _ memory: [UnsafeMutableRawBufferPointer]) {
    // Each mapping of driver memory is replaced by zero pages. `MAP_FIXED` does this in one step,
    // so that no other mapping can take the address meanwhile. Errors are ignored: the driver then
    // releases the device only later, when the memory is unmapped and the descriptor closed.
    for piece in memory {
      _ = mmap(
        piece.baseAddress, piece.count, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
    }
    let nothing = Glibc.open("/dev/null", O_RDWR | O_CLOEXEC)
    guard nothing >= 0 else { return }
    _ = dup2(nothing, descriptor)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = Glibc.close(nothing)
  }

  func control(
    _ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    CVideo4Linux_ioctl(
      descriptor, request, argument, Self.usesPlugins.load(ordering: .relaxed))
  }

  func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt {
    CVideo4Linux_poll(descriptor, events, milliseconds)
  }

  func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer? {
    CVideo4Linux_map(descriptor, length, offset, &error)
  }

  func unmap(_ memory: UnsafeMutableRawBufferPointer) {
    v4l2_munmap(memory.baseAddress, memory.count)
  }

  func nanoseconds() -> Int64 { MonotonicClock.nanoseconds() }

  func nodes() -> [String] {
    SystemFiles.entries(in: nodeDirectory).map { "\(nodeDirectory)/\($0)" }.filter {
      VideoDevice.number(ofNode: $0) != nil
    }
  }

  /// Whether a plugin of libv4l2 was ever active in this process.
  ///
  /// Without a plugin, libv4l2 only forwards requests to the kernel, so the kernel is called
  /// directly. For each request, libv4l2 takes a lock and formats a log line, even if the line is
  /// discarded. This takes 5 % of the time that this program spends on a frame of 100 kB.
  private static let usesPlugins = Atomic<Bool>(false)

  /// Keeps libv4l2 from printing messages to stderr.
  ///
  /// The first access to this property silences the library for the whole process.
  private static let silencedLibrary: Void = CVideo4Linux_silence()
}
