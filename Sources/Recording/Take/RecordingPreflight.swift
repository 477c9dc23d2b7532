// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// The requirements of a take, and the capabilities of its disk and memory.
public struct RecordingPreflight: Hashable, Sendable, Codable {
  /// The data rate of the take in bytes per second.
  ///
  /// The rate is exact for uncompressed video. For compressed video, it is a typical value, which
  /// complex images may double.
  public let bytesPerSecond: Int64
  /// The measured write speed of the disk in bytes per second.
  ///
  /// Nil if the data rate is below 10 MB/s, or if the measurement failed.
  public let diskBytesPerSecond: Int64?
  /// The free bytes of the disk, or nil if unknown.
  public let freeBytes: Int64?
  /// The longest take that fits in memory if ``RecordingSettings/isBurst`` is true and each frame
  /// has the maximum size.
  public let maximumBurstDuration: MediaTime

  /// The reason why the take stores no audio although its camera has some; nil for any other take.
  ///
  /// An MP4 file stores only the sample rates and channel counts of AAC.
  public private(set) var audioRefusal: MediaError? = nil

  private enum CodingKeys: String, CodingKey {
    case bytesPerSecond, diskBytesPerSecond, freeBytes
    case maximumBurstDuration = "longestBurst"
  }

  /// The duration of the take until the disk is full, or nil if unknown.
  public var freeDuration: MediaTime? {
    freeBytes.map {
      MediaTime(microseconds: Int64(saturating: Double($0) / Double(max(1, bytesPerSecond)) * 1e6))
    }
  }

  /// The warnings for a take of this duration.
  ///
  /// A nil duration means a take without a limit.
  public func warnings(for duration: MediaTime?) -> [String] {
    var warnings: [String] = []
    func megabytes(_ bytes: Int64) -> String { "\((bytes &+ 500_000) / 1_000_000) MB" }
    if let disk = diskBytesPerSecond, disk < bytesPerSecond {
      warnings.append(
        "the disk writes \(megabytes(disk)) per second and the recording needs about "
          + "\(megabytes(bytesPerSecond)): choose another directory or a smaller mode, or record a burst"
      )
    }
    // For a take without a limit, the warning about free space appears if the disk would be full
    // within a minute.
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
  /// Checks whether disk and memory suffice for a take.
  ///
  /// Blocks.
  ///
  /// The check takes at least 0.25 s and the time to write 4 MiB. If the take needs more than 10
  /// MB/s, the disk is measured: up to 64 MiB are written to an unlinked file in the directory of
  /// the take.
  ///
  /// - Throws: `MediaError` if the output has no camera, or the codec does not fit the camera.
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
      freeBytes: free, maximumBurstDuration: BurstMemory(input).longest,
      audioRefusal: try audioRefusal())
  }
}

extension VideoPipelinePlan {
  /// The size of a stored frame in bytes: exact for uncompressed video, otherwise a typical value.
  ///
  /// Typical values were measured with the synthetic camera and with sports videos.
  fileprivate func typicalBytesPerFrame(of delivery: FrameDelivery, largest: Int) -> Double {
    let pixels = Double(delivery.width) * Double(delivery.height)
    switch self {
    case .encode(.rawVideo, _): return Double(largest)
    case .encode(.ffv1, _): return Double(largest) / 2
    case .encode(.h264, _), .copy(.h264): return pixels * 0.3 / 8
    case .encode, .copy: return pixels / 8
    }
  }
}

/// The memory available for a burst, which is a take that stays in memory until its end.
struct BurstMemory {
  /// Three quarters of the available memory, in bytes.
  let capacity: Int
  /// The number of frames of the maximum size that fit in this memory, and the duration of these
  /// frames.
  let frameCount: Int
  let longest: MediaTime
  private let input: (bytesPerFrame: Int, framesPerSecond: Double)

  init(_ input: DeviceInput) {
    capacity = max(4 * (input.maximumByteCount + 4_096), RecordingMemory.availableBytes() / 4 * 3)
    // The queue's memory consists of chunks, and no frame crosses the end of a chunk. The reduction
    // by one frame allows for unused space at the end.
    frameCount = max(1, capacity / (input.maximumByteCount + 4_096) - 1)
    let period = input.negotiatedFrameRate.frameDuration
    let seconds = MediaTime(exactly: period * Rational(Int64(frameCount)))
    longest =
      (try? seconds?.converted(to: 1_000_000, rounding: .towardNegativeInfinity)) ?? .zero
    self.input = (input.maximumByteCount + 4_096, input.negotiatedFrameRate.doubleValue)
  }

  /// The number of bytes to reserve for a take with a limit.
  ///
  /// The size allows for a camera that is 25 % faster than its nominal rate.
  func capacity(for limit: CaptureLimit) -> Int {
    let count =
      limit.frameCount.map(Double.init)
      ?? limit.duration.map { ($0.doubleValue * 1.25 + 0.5) * input.framesPerSecond }
    guard let count else { return capacity }
    // The queue's memory consists of chunks, and no frame crosses the end of a chunk. An extra 8
    // MiB makes up for the unused space at the ends of chunks.
    let bytes = (count + 4) * Double(input.bytesPerFrame) + Double(8 << 20)
    return bytes < Double(capacity) ? Int(bytes) : capacity
  }
}

/// Measures the write speed of a disk.
package enum DiskProbe {
  private static let blockBytes = 4 << 20
  private static let longest: Int64 = 250_000_000

  /// Measures how fast an unlinked file next to a path can be written and synced, for 0.25 s.
  ///
  /// Returns nil if the file cannot be written.
  package static func bytesPerSecond(besides path: String) -> Int64? {
    let name = TemporaryName.beside(path, "probe")
    let descriptor = open(name.systemPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    let file = RandomAccessFile(OpenFile(adopting: descriptor, path: name))
    unlink(name.systemPath)
    // A file system in memory is fast enough for any camera, so it is not measured.
    guard !file.isInMemory else { return nil }
    // Some disks do not store blocks of zeros, so the data is not zero.
    var words = [UInt64](repeating: 0x9E37_79B9_7F4A_7C15, count: blockBytes / 8)
    for index in words.indices { words[index] &*= UInt64(index | 1) }
    let block = words.withUnsafeBytes { [UInt8]($0) }
    let start = MonotonicClock.nanoseconds()
    var written: Int64 = 0
    while written < 16 * Int64(blockBytes), MonotonicClock.nanoseconds() - start < longest {
      do throws(CallFailure) {
        try file.write(block, at: written)
        // Each block is synced, because a slow disk would otherwise accept the data into its cache
        // and seem too fast.
        try file.sync()
      } catch { break }
      written += Int64(block.count)
    }
    guard written > 0 else { return nil }
    let elapsed = max(1, MonotonicClock.nanoseconds() - start)
    return Int64(Double(written) / Double(elapsed) * 1e9)
  }
}
