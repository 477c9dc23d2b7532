// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
import Synchronization

/// The changes in folders: inotify(7), which needs no privilege, and works in containers, where
/// the kernel's own messages about devices do not arrive.
///
/// One thread reads; it closes when it goes.
package final class DirectoryWatcher: Sendable {
  /// Something that happened to an entry of a folder.
  package struct Event: Hashable, Sendable {
    /// What happened.
    package enum Change: Hashable, Sendable {
      /// There is an entry of that name now.
      case appeared
      /// There is none any more.
      case disappeared
      /// Its permissions or its owner changed.
      case changed
    }

    package let folder: String
    package let name: String
    package let change: Change
  }

  /// Becomes readable when something has happened.
  package let descriptor: CInt
  private let folders = Mutex<[CInt: String]>([:])

  /// Makes a watch of no folder yet.
  ///
  /// - Throws: `SystemError` when this user watches too much already.
  package init() throws(SystemError) {
    descriptor = inotify_init1(O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw SystemError("watch", "directories", errno) }
  }

  deinit { _ = close(descriptor) }  // Nobody is left to tell.

  /// Watches a folder from here on; false where there is none.
  @discardableResult
  package func add(_ folder: String) -> Bool {
    let mask = IN_CREATE | IN_DELETE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR
    // The answer for a folder that is watched already is the number it has.
    let number = inotify_add_watch(descriptor, folder, UInt32(truncatingIfNeeded: mask))
    guard number >= 0 else { return false }
    folders.withLock { $0[number] = folder }
    return true
  }

  /// Takes what has happened since the last call, without waiting.
  ///
  /// - Returns: The events in order, or nil where there were too many to keep: then everything
  ///   may have changed.
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
    let folder = folders.withLock { folders in
      // The folder is gone; its number may be given to another.
      has(IN_IGNORED) ? folders.removeValue(forKey: event.wd) : folders[event.wd]
    }
    guard let folder, !name.isEmpty else { return nil }
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
    return Event(folder: folder, name: name, change: change)
  }
}
