// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The processors of the machine.
package enum Processors {
  /// How many processors there are to share among threads, from 1; sysconf(3).
  package static var count: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
