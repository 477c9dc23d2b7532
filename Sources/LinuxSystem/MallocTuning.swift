// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem

/// The way in which glibc handles freed buffers of the size of a video frame.
package enum MallocTuning {
  /// Keeps freed large buffers in the process for the next frame, instead of unmapping them.
  package static func keep() { CLinuxSystem_keepLargeBuffers() }
}
