// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The processors of this machine.
package enum Processors {
  /// The number of online processors, at least 1; see sysconf(3).
  package static var count: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
