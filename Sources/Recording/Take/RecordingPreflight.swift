// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// What a take will need, and what its disk and the memory have: known before it begins.
public struct RecordingPreflight: Hashable, Sendable, Codable {
  /// Bytes that a second of the take has: exact for uncompressed pictures, else what pictures of
  /// this size and codec usually take; busy pictures take up to twice as much.
  public let bytesPerSecond: Int64
  /// Bytes that the disk took in a second just now; nil where nothing was measured because any
  /// disk is fast enough, or because it could not be.
  public let diskBytesPerSecond: Int64?
  /// Free bytes of the disk; nil where the system does not tell.
  public let freeBytes: Int64?
  /// The longest take that memory surely holds with ``RecordingSettings/isBurst``.
  public let maximumBurstDuration: MediaTime

  private enum CodingKeys: String, CodingKey {
    case bytesPerSecond, diskBytesPerSecond, freeBytes
    case maximumBurstDuration = "longestBurst"
  }

  /// How long the disk's free space lasts; nil where it is not known.
  public var freeDuration: MediaTime? {
    freeBytes.map {
      MediaTime(microseconds: Int64(saturating: Double($0) / Double(max(1, bytesPerSecond)) * 1e6))
    }
  }

  /// What the user should know before a take of so long, or one without a limit.
  public func warnings(for duration: MediaTime?) -> [String] {
    var warnings: [String] = []
    func megabytes(_ bytes: Int64) -> String { "\((bytes &+ 500_000) / 1_000_000) MB" }
    if let disk = diskBytesPerSecond, disk < bytesPerSecond {
      warnings.append(
        "the disk takes \(megabytes(disk)) a second and the take needs about "
          + "\(megabytes(bytesPerSecond)): choose another folder or a smaller mode, or record a burst"
      )
    }
    // Below a minute the disk is full before anyone has noticed.
    let needed = duration ?? MediaTime(seconds: 60)
    if let free = freeDuration, free < needed {
      warnings.append(
        "the disk has room for about \(Int64(saturating: free.doubleValue)) s of this mode: free some space, or "
          + "choose a smaller mode")
    }
    return warnings
  }
}

extension MovieFileOutput {
  /// Looks whether disk and memory suffice for a take; takes a quarter of a second, and as long as
  /// the disk needs for 4 MiB.
  ///
  /// Where the take needs more than 10 MB a second, the disk is measured by writing up to 64 MiB to
  /// a file that nobody sees, in the folder of the take.
  ///
  /// - Throws: `MediaError` when the output is connected to no camera, or the codec does not go
  ///   with it.
  public func preflight() throws(MediaError) -> RecordingPreflight {
    let input = try camera()
    let plan = try settings.plan(for: input.delivery)
    let needed =
      plan.typicalBytesPerFrame(of: input.delivery, largest: input.maximumByteCount)
      * input.negotiatedFrameRate.doubleValue
    let free = FreeSpace.bytes(at: settings.path)
    let isFast = needed >= 10e6
    return RecordingPreflight(
      bytesPerSecond: Int64(saturating: needed),
      diskBytesPerSecond: isFast ? DiskProbe.bytesPerSecond(besides: settings.path) : nil,
      freeBytes: free, maximumBurstDuration: BurstMemory(input).longest)
  }
}

extension VideoPipelinePlan {
  /// Bytes of a stored picture: exact where pixels are stored, else by what such pictures usually
  /// take, measured on the synthetic camera and on films of sports.
  fileprivate func typicalBytesPerFrame(of delivery: FrameDelivery, largest: Int) -> Double {
    let pixels = Double(delivery.width) * Double(delivery.height)
    switch self {
    case .encode(.rawVideo): return Double(largest)
    case .encode(.ffv1): return Double(largest) / 2
    case .encode(.h264), .copy(.h264): return pixels * 0.3 / 8
    case .encode, .copy: return pixels / 8
    }
  }
}

/// The memory that a burst may fill.
struct BurstMemory {
  /// Bytes, three quarters of what programs may still take.
  let capacity: Int
  /// The frames that surely fit, and how long they last.
  let frameCount: Int
  let longest: MediaTime
  private let input: (bytesPerFrame: Int, framesPerSecond: Double)

  init(_ input: DeviceInput) {
    capacity = max(4 * (input.maximumByteCount + 4_096), RecordingMemory.availableBytes() / 4 * 3)
    // One chunk of the queue may be left over.
    frameCount = max(1, capacity / (input.maximumByteCount + 4_096) - 1)
    let period = input.negotiatedFrameRate.frameDuration
    let seconds = MediaTime(exactly: period * Rational(Int64(frameCount)))
    longest =
      (try? seconds?.converted(to: 1_000_000, rounding: .towardNegativeInfinity)) ?? .zero
    self.input = (input.maximumByteCount + 4_096, input.negotiatedFrameRate.doubleValue)
  }

  /// Bytes to reserve for a take with limits: no more than its frames can fill, though a camera may
  /// be a quarter faster than it says.
  func capacity(for limit: CaptureLimit) -> Int {
    let count =
      limit.frameCount.map(Double.init)
      ?? limit.duration.map { ($0.doubleValue * 1.25 + 0.5) * input.framesPerSecond }
    guard let count else { return capacity }
    // Two chunks more, since frames do not fill each.
    let bytes = (count + 4) * Double(input.bytesPerFrame) + Double(8 << 20)
    return bytes < Double(capacity) ? Int(bytes) : capacity
  }
}

/// How fast a disk takes data.
enum DiskProbe {
  private static let blockBytes = 4 << 20
  private static let longest: Int64 = 250_000_000

  /// Writes to a file without a name beside a path for a quarter of a second, and waits until the
  /// disk has it; nil where that cannot be done.
  static func bytesPerSecond(besides path: String) -> Int64? {
    let name = TemporaryName.beside(path, "probe")
    let descriptor = open(name.systemPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    let file = try? RandomAccessFile(opening: name)
    unlink(name.systemPath)
    defer { close(descriptor) }
    // Memory is faster than any camera, and to find out by how much costs as much as a take.
    guard file?.isInMemory == false else { return nil }
    // Not of zeros, which some disks only note.
    var block = [UInt64](repeating: 0x9E37_79B9_7F4A_7C15, count: blockBytes / 8)
    for index in block.indices { block[index] &*= UInt64(index | 1) }
    let start = MonotonicClock.nanoseconds()
    var written = 0
    while written < 16 * blockBytes, MonotonicClock.nanoseconds() - start < longest {
      let count = block.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      // Each by itself: what waits in memory would take a slow disk long after the time is up.
      guard count > 0, fdatasync(descriptor) == 0 else { break }
      written += count
    }
    guard written > 0 else { return nil }
    let elapsed = max(1, MonotonicClock.nanoseconds() - start)
    return Int64(Double(written) / Double(elapsed) * 1e9)
  }
}
