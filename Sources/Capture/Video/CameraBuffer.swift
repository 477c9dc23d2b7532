// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
package import OvercrankV4L2

/// A buffer of a camera, held by a sample.
package struct CameraBuffer {
  /// The camera's buffer pool, which is replaced when the camera is reopened.
  package let pool: BufferPool
  /// The driver's index of the buffer.
  package let index: Int

  /// Exports the buffer for other devices, such as a GPU.
  ///
  /// Call this only while the sample that holds the buffer exists.
  ///
  /// - Returns: The buffer, or nil if the frames are in this program's own memory.
  /// - Throws: `MediaError` if the driver cannot export it.
  package func export() throws(MediaError) -> ExportedBuffer? { try pool.driver.export(index) }
}
