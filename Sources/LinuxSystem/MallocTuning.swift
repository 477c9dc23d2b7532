// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem

/// glibc's handling of freed buffers of a video frame's size.
package enum MallocTuning {
  /// Keeps freed large buffers in the process for the next frame, instead of unmapping them.
  package static func keep() { CLinuxSystem_keepLargeBuffers() }
}
