// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

/// A counter in a memory-mapped file.
///
/// Other processes can read it, even after this process was killed.
///
/// The file consists of one 64-bit integer in native byte order.
final class SharedCounter: Sendable {
  private static let byteCount = 8

  private let path: String
  /// The address of the mapped file, or 0 before ``open()``.
  private let address = Atomic<UInt>(0)

  /// Creates a counter without opening its file.
  init(path: String) { self.path = path }

  deinit {
    let memory = UnsafeMutableRawPointer(bitPattern: address.load(ordering: .relaxed))
    if let memory { munmap(memory, Self.byteCount) }
  }

  /// Opens the counter's file, or creates it, and resets the counter to 0.
  ///
  /// Does nothing if the file is already open. An existing file must have exactly 8 bytes and must
  /// not be a symbolic link. Any other file is left unchanged, and the call throws.
  ///
  /// - Throws: `MediaError` with `.deviceFailed` if the file cannot be used.
  func open() throws(MediaError) {
    guard address.load(ordering: .relaxed) == 0 else { return }
    let created = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    if created < 0, errno != EEXIST { throw failure(errno) }
    let isNew = created >= 0
    let descriptor = isNew ? created : try openExisting()
    defer { close(descriptor) }
    guard !isNew || ftruncate(descriptor, off_t(Self.byteCount)) == 0,
      let memory = mmap(
        nil, Self.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
      memory != MAP_FAILED
    else {
      let reason = errno
      if isNew { unlink(path) }
      throw failure(reason)
    }
    memory.storeBytes(of: 0, as: Int64.self)
    address.store(UInt(bitPattern: memory), ordering: .relaxed)
  }

  /// Opens an existing file, and throws if it is not a counter file.
  private func openExisting() throws(MediaError) -> Int32 {
    // `O_NONBLOCK` prevents blocking if the path is a named pipe.
    let descriptor = Glibc.open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw errno == ELOOP ? failure("it is a symbolic link") : failure(errno)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_size == off_t(Self.byteCount)
    else {
      close(descriptor)
      throw failure("it exists and is not a counter file of \(Self.byteCount) bytes")
    }
    return descriptor
  }

  private func failure(_ errorNumber: Int32) -> MediaError {
    failure(String(cString: strerror(errorNumber)))
  }

  private func failure(_ reason: String) -> MediaError {
    MediaError(
      .deviceFailed, "the synthetic camera cannot write its counter to \(path): \(reason)",
      recovery: "choose a new file in a writable directory: counter=/dev/shm/frames")
  }

  /// Increments the counter.
  ///
  /// Call this only after ``open()``, and never from two threads at once.
  func add() {
    let memory = UnsafeMutableRawPointer(bitPattern: address.load(ordering: .relaxed))
    guard let memory else { return }
    memory.storeBytes(of: memory.load(as: Int64.self) &+ 1, as: Int64.self)
  }
}
