// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A count that other processes may read, and that stays when this one is killed: the first eight
/// bytes of a file, in the machine's own byte order.
final class SharedCounter: Sendable {
  // One thread counts at a time.
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer

  /// Maps a file, which is made if there is none, and begins at 0.
  ///
  /// - Throws: `CaptureError` with `.deviceFailed` where the file cannot be had.
  init(path: String) throws(CaptureError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0, ftruncate(descriptor, 8) == 0,
      let memory = mmap(nil, 8, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
      memory != MAP_FAILED
    else {
      let reason = String(cString: strerror(errno))
      if descriptor >= 0 { close(descriptor) }
      throw CaptureError(
        .deviceFailed, "the synthetic camera cannot count in \(path): \(reason)",
        hint: "name a file that can be written: counter=/dev/shm/frames")
    }
    close(descriptor)
    self.memory = memory
    memory.storeBytes(of: 0, as: Int64.self)
  }

  deinit { munmap(memory, 8) }

  func add() {
    memory.storeBytes(of: memory.load(as: Int64.self) &+ 1, as: Int64.self)
  }
}
