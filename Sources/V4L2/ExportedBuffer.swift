// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
package import OvercrankMediaCore

/// A driver's buffer as a dma-buf, which another device can read without a copy.
///
/// The descriptor is closed with this value. A device that has imported the buffer keeps its memory
/// alive.
package struct ExportedBuffer: ~Copyable {
  /// The descriptor of the dma-buf.
  package let descriptor: CInt
  /// The memory of the buffer, mapped into this process while the buffer's queue exists.
  package let memory: UnsafeRawBufferPointer

  /// Takes ownership of the descriptor of a dma-buf.
  package init(owning descriptor: CInt, of memory: UnsafeRawBufferPointer) {
    (self.descriptor, self.memory) = (descriptor, memory)
  }

  deinit { _ = Glibc.close(descriptor) }
}

extension BufferQueue {
  /// Exports a buffer: `VIDIOC_EXPBUF`.
  ///
  /// May be called from any thread, also while the driver fills the buffer.
  ///
  /// - Returns: The buffer, or nil if frames are copied out of several memory planes.
  /// - Throws: ``CallFailure`` with the operation `.exportBuffer`. The kind is `.notSupported` if
  ///   the driver cannot export, or `.unplugged` if the device is gone.
  package func export(_ index: Int) throws(CallFailure) -> ExportedBuffer? {
    guard let memory = frameMemory(index) else { return nil }
    var request = v4l2_exportbuffer()
    request.type = device.bufferType
    request.index = UInt32(clamping: index)
    // The descriptor permits writing, because software renderers map the buffer for reading and
    // writing.
    request.flags = UInt32(O_CLOEXEC | O_RDWR)
    try CallFailure.check(
      control(CVideo4Linux_VIDIOC_EXPBUF, &request), .exportBuffer, path)
    return ExportedBuffer(owning: request.fd, of: memory)
  }
}
