// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem

/// Settings of glibc's memory allocator.
package enum MallocTuning {
  /// Makes glibc keep large buffers that are freed, for use by the next frame, instead of unmapping
  /// them.
  package static func keep() { CLinuxSystem_keepLargeBuffers() }

  /// Lets all threads share one heap, for a process with little address space.
  ///
  /// Otherwise each thread reserves up to 128 MiB of address space for a separate heap. If no
  /// address space is left, each allocation of the thread becomes a mapping of at least 4096 bytes.
  /// This is so slow that the process seems to hang.
  package static func shareOneHeap() { CLinuxSystem_shareOneHeap() }
}
