// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
package import OvercrankSimulatedCameras

extension SyntheticDriver: FrameDriver {
  package func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    guard let buffer = nextBuffer(timeoutMilliseconds: timeoutMilliseconds) else { return nil }
    return DequeuedBuffer(buffer, of: self)
  }
}

extension FileDriver: FrameDriver {
  package func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    guard let buffer = try nextBuffer(timeoutMilliseconds: timeoutMilliseconds) else { return nil }
    return DequeuedBuffer(buffer, of: self)
  }
}

extension DequeuedBuffer {
  fileprivate init(_ buffer: FilledBuffer, of driver: any FrameDriver) {
    self.init(buffer.observation, bytes: buffer.bytes, index: buffer.index, driver: driver)
  }
}
