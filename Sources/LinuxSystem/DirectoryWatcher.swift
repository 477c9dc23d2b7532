// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
package import OvercrankMediaCore
import Synchronization

/// Watches directories for changes with inotify(7).
///
/// inotify needs no privileges, and also works in containers, where udev events do not arrive.
///
/// ``take()`` is called by one thread only. The descriptor is closed on `deinit`.
package final class DirectoryWatcher: Sendable {
  /// A change of one directory entry.
  package struct Event: Hashable, Sendable {
    /// The kind of change.
    package enum Change: Hashable, Sendable {
      /// An entry of this name was created or moved into the directory.
      case appeared
      /// The entry was deleted or moved out of the directory.
      case disappeared
      /// The permissions or the owner of the entry changed.
      case changed
    }

    package let directory: String
    package let name: String
    package let change: Change
  }

  /// The inotify descriptor; readable when events are pending.
  package let descriptor: CInt
  private let directories = Mutex<[CInt: String]>([:])

  /// Makes a watcher without directories.
  ///
  /// - Throws: `CallFailure` if the user has reached the limit of inotify instances.
  package init() throws(CallFailure) {
    descriptor = inotify_init1(O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw CallFailure("watch", "directories", errno) }
  }

  deinit { _ = close(descriptor) }  // No caller is left to report an error to.

  /// Starts to watch a directory.
  ///
  /// Returns true on success, and false if the directory does not exist.
  @discardableResult
  package func add(_ directory: String) -> Bool {
    let mask = IN_CREATE | IN_DELETE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR
    // For a directory that is already watched, inotify returns the directory's existing watch
    // descriptor.
    let number = inotify_add_watch(descriptor, directory, UInt32(truncatingIfNeeded: mask))
    guard number >= 0 else { return false }
    directories.withLock { $0[number] = directory }
    return true
  }

  /// Returns the events since the last call, without blocking.
  ///
  /// - Returns: The events in order. Nil if the kernel's queue overflowed, so that any entry may
  ///   have changed.
  package func take() -> [Event]? {
    var events: [Event] = []
    var isWhole = true
    withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 8) { memory in
      while true {
        let count = read(descriptor, memory.baseAddress, memory.count)
        guard count > 0 else { break }
        var position = 0
        let head = MemoryLayout<inotify_event>.size
        while position + head <= count {
          let event = memory.loadUnaligned(fromByteOffset: position, as: inotify_event.self)
          let start = position + head
          let end = min(count, start + Int(event.len))
          if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { isWhole = false }
          let name = SystemFiles.text(UnsafeRawBufferPointer(rebasing: memory[start..<end]))
          if let event = self.event(event, name) { events.append(event) }
          position = end
        }
      }
    }
    return isWhole ? events : nil
  }

  private func event(_ event: inotify_event, _ name: String) -> Event? {
    func has(_ flag: some BinaryInteger) -> Bool {
      event.mask & UInt32(truncatingIfNeeded: flag) != 0
    }
    let directory = directories.withLock { directories in
      // IN_IGNORED means that the directory was deleted. inotify may reuse the directory's watch
      // descriptor, so the descriptor is forgotten.
      has(IN_IGNORED) ? directories.removeValue(forKey: event.wd) : directories[event.wd]
    }
    guard let directory, !name.isEmpty else { return nil }
    let change: Event.Change
    if has(IN_CREATE) || has(IN_MOVED_TO) {
      change = .appeared
    } else if has(IN_DELETE) || has(IN_MOVED_FROM) {
      change = .disappeared
    } else if has(IN_ATTRIB) {
      change = .changed
    } else {
      return nil
    }
    return Event(directory: directory, name: name, change: change)
  }
}
