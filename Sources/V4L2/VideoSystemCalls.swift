// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The calls by which a driver is reached: the kernel's, or those of a driver in this process.
///
/// Each answers with a value or a negative errno. The seam lies here so that all above it, this
/// room included, runs unchanged on a driver whose clock and faults a test controls.
package protocol VideoSystemCalls: Sendable {
  /// Opens a node for reading and writing without waiting: open(2).
  func open(_ path: String) -> CInt

  /// Closes a descriptor: close(2).
  func close(_ descriptor: CInt) -> CInt

  /// Makes a request: ioctl(2).
  func control(_ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> CInt

  /// Waits for one of poll(2)'s events; answers with those that came, or 0 at the time limit.
  func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt

  /// Maps memory of the driver's: mmap(2); nil and `error` where it refuses.
  func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer?

  /// Unmaps memory of the driver's: munmap(2).
  func unmap(_ memory: UnsafeMutableRawBufferPointer)

  /// Detaches from a device that is gone for good, without making its descriptor or the memory mapped
  /// from it invalid: requests fail from then on, and the memory is zeros.
  ///
  /// A driver waits until nobody has its device any more, and only then lets it be again.
  func abandon(_ descriptor: CInt, _ memory: [UnsafeMutableRawBufferPointer])

  /// The clock that the driver's times are of, in nanoseconds; `CLOCK_MONOTONIC` for the kernel.
  func nanoseconds() -> Int64

  /// The nodes `/dev/video…`, or what stands for them, as paths in no order.
  func nodes() -> [String]

  /// The nodes `/dev/v4l-subdev…` of the LEDs among the parts that a camera is made of, in the
  /// order its media device tells them; none of most cameras.
  func leds(of node: String) -> [String]

  /// Opens the node of a part, which answers less than a camera's: open(2).
  func openSubdevice(_ path: String) -> CInt

  /// The folder that nodes appear in and go from, and udev's links below `v4l` with them.
  var nodeFolder: String { get }
}

extension VideoSystemCalls {
  package var nodeFolder: String { "/dev" }
  package func abandon(_ descriptor: CInt, _ memory: [UnsafeMutableRawBufferPointer]) {}
  package func leds(of node: String) -> [String] { [] }
  package func openSubdevice(_ path: String) -> CInt { -ENOENT }
}

/// Where devices opened from here on are reached.
package enum DeviceSystem {
  /// The kernel's calls, unless a test puts a driver of its own in their place for its task.
  @TaskLocal package static var calls: any VideoSystemCalls = KernelVideoCalls()
}

/// The kernel's calls, through libv4l2 with its conversion switched off where one of its plugins is
/// at work.
struct KernelVideoCalls: VideoSystemCalls {
  let nodeFolder: String

  /// Where the kernel tells which nodes belong to which device.
  private let classFolder: String

  /// - Parameters:
  ///   - nodeFolder: What stands for `/dev` when devices are looked for.
  ///   - classFolder: What stands for `/sys/class/video4linux`.
  init(nodeFolder: String = "/dev", classFolder: String = "/sys/class/video4linux") {
    self.nodeFolder = nodeFolder
    self.classFolder = classFolder
  }

  func open(_ path: String) -> CInt {
    _ = Self.silencedLibrary
    let descriptor = CVideo4Linux_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return descriptor }
    // The kernel first: given anything but a video node, libv4l2's plugins print on stderr.
    var answer = v4l2_capability()
    var result = withUnsafeMutablePointer(to: &answer) {
      CVideo4Linux_ioctl(descriptor, CVideo4Linux_VIDIOC_QUERYCAP, $0, false)
    }
    // Only single-planar cameras are shown to libv4l2: its plugin for multi-planar nodes announces
    // itself on stdout, makes them look single-planar, and fails at formats of several planes.
    // libv4l2 passes requests of a node that it does not know to the kernel.
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

  /// The nodes of some entities of the media device that a node belongs to.
  ///
  /// Parts have devices of their own, on the bus they are on: only the media device tells which
  /// belong together (`MEDIA_IOC_ENUM_ENTITIES`).
  ///
  /// - Parameters:
  ///   - node: The camera's node.
  ///   - entities: The device numbers of these entities, as `major:minor`, asked of the media
  ///     device at a path.
  /// - Returns: Their paths, without those that this system does not show.
  func parts(of node: String, _ entities: (String) -> [String]) -> [String] {
    let name = (SystemFiles.resolved(node) ?? node).lastPathComponent
    let media = SystemFiles.entries(in: "\(classFolder)/\(name)/device").filter {
      $0.hasPrefix("media") && Int($0.dropFirst("media".count)) != nil
    }
    let numbers = media.sorted().flatMap { entities("\(nodeFolder)/\($0)") }
    guard !numbers.isEmpty else { return [] }
    let names = Dictionary(
      SystemFiles.entries(in: classFolder).compactMap { name in
        SystemFiles.firstLine(of: "\(classFolder)/\(name)/dev").map { ($0, name) }
      }, uniquingKeysWith: { first, _ in first })
    return numbers.compactMap { names[$0] }.map { "\(nodeFolder)/\($0)" }
  }

  /// Asks a media device for its entities of a function.
  static func entityNodes(_ function: UInt32) -> (String) -> [String] {
    { path in
      var found = [UInt32](repeating: 0, count: 2 * 64)
      let count = CVideo4Linux_entityNodes(path, function, &found, CInt(found.count / 2))
      return (0..<max(0, Int(count))).map { "\(found[2 * $0]):\(found[2 * $0 + 1])" }
    }
  }

  // libv4l2 passes requests of a node that it does not know to the kernel.
  func openSubdevice(_ path: String) -> CInt {
    CVideo4Linux_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
  }

  func close(_ descriptor: CInt) -> CInt { CVideo4Linux_close(descriptor) }

  func abandon(_ descriptor: CInt, _ memory: [UnsafeMutableRawBufferPointer]) {
    // Each in one step, so that nothing else can take the place in between. Where the system
    // refuses, the device is released when the descriptor is closed.
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
    SystemFiles.entries(in: nodeFolder).map { "\(nodeFolder)/\($0)" }.filter {
      VideoDevice.number(ofNode: $0) != nil
    }
  }

  /// Whether a plugin was ever at work.
  ///
  /// Where none is, libv4l2 only passes requests on, but takes a lock and writes a line into its log
  /// for each: with a log that is thrown away that is still a twentieth of what a frame of 100 kB
  /// costs.
  private static let usesPlugins = Atomic<Bool>(false)

  /// Keeps libv4l2 off stderr, once for the process; touching it is enough.
  private static let silencedLibrary: Void = CVideo4Linux_silence()
}
