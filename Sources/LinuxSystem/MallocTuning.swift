// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem

/// What becomes of freed buffers of a picture's size.
package enum MallocTuning {
  /// Has the process keep them for the next picture.
  package static func keep() { CLinuxSystem_keepLargeBuffers() }
}
