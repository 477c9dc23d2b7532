// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem

/// The way in which glibc handles memory.
package enum MallocTuning {
  /// Keeps freed large buffers in the process for the next frame, instead of unmapping them.
  package static func keep() { CLinuxSystem_keepLargeBuffers() }

  /// Lets all threads share one heap, for a process with little address space.
  ///
  /// Otherwise each thread reserves up to 128 MiB of address space for a heap of its own. If it gets
  /// none, each of its requests for memory becomes a mapping, which takes 4096 bytes and is so slow
  /// that the process seems to hang.
  package static func shareOneHeap() { CLinuxSystem_shareOneHeap() }
}
