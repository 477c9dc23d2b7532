// SPDX-License-Identifier: Apache-2.0
import LibAV

/// How a process that records uses its memory.
public enum RecordingMemory {
  /// Has freed buffers of a picture's size kept for the next one, up to 256 MiB in all.
  ///
  /// glibc would give each back to the kernel and take new pages for the next, which costs more
  /// than to copy a picture. It is a setting of the whole process (mallopt(3)), so it is for
  /// programs to choose and not for libraries; call it once, before the first take.
  public static func keepLargeBuffers() { LargeBuffers.keep() }
}
