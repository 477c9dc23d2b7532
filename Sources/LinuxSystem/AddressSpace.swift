// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The address space that the process may still map.
package enum AddressSpace {
  /// The number of bytes that may still be mapped below RLIMIT_AS (`ulimit -v`); nil if unlimited.
  package static var bytesLeft: Int64? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0,
      limit.rlim_cur != rlim_t.max,
      // The first field of /proc/self/statm is the total program size in pages; see proc(5).
      let pages = SystemFiles.firstLine(of: "/proc/self/statm")?.split(separator: " ").first
        .flatMap({ Int64($0) })
    else { return nil }
    let used = pages.multipliedReportingOverflow(by: Int64(sysconf(Int32(_SC_PAGESIZE))))
    return used.overflow ? 0 : max(0, Int64(clamping: limit.rlim_cur) - used.partialValue)
  }
}
