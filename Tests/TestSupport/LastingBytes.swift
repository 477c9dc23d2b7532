// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The addresses of the copies, which keep a leak checker from reporting them.
private let addresses = Mutex<[UInt]>([])

/// Copies bytes to memory that is never freed, like that of a driver's buffers.
package func lasting(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
  memory.copyBytes(from: bytes)
  let address = UInt(bitPattern: memory.baseAddress)
  addresses.withLock { $0.append(address) }
  return UnsafeRawBufferPointer(memory)
}
