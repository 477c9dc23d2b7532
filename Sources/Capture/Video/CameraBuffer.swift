// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
package import OvercrankV4L2

/// A buffer of a camera, held by a sample.
package struct CameraBuffer {
  /// The buffers of the camera, for as long as it is open in one format.
  package let pool: BufferPool
  /// The driver's index of the buffer.
  package let index: Int

  /// Exports the buffer for other devices; the sample must exist.
  ///
  /// - Returns: The buffer, or nil if its frames are not in memory of a driver.
  /// - Throws: `MediaError` if the driver cannot export it.
  package func export() throws(MediaError) -> ExportedBuffer? { try pool.driver.export(index) }
}
