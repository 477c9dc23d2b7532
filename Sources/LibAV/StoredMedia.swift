// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
import OvercrankMediaCore

/// A source file whose packets are copied by their byte locations, without being read.
///
/// A muxer needs the address of a packet's bytes, but for most codecs it passes the bytes on
/// without reading them. An address is therefore reserved for each byte of the file. At these
/// addresses there are only zeros. A ``CopyingSink`` recognizes the addresses, and copies the bytes
/// of the file instead.
package final class StoredMedia {
  let file: OpenFile
  private let start: UnsafeMutableRawPointer
  private let byteCount: Int
  private var buffer: UnsafeMutablePointer<AVBufferRef>?

  /// Reserves an address for each byte of a file.
  ///
  /// - Throws: `LibAVError` if not enough addresses are free.
  package init(_ file: OpenFile) throws(LibAVError) {
    let padding = Int64(AV_INPUT_BUFFER_PADDING_SIZE)
    let failure = LibAVError("reserve addresses for", file.path, code: CFFmpeg_ENOMEM)
    guard let byteCount = Int(exactly: RandomAccessFile(file).count() + padding),
      let start = mmap(
        nil, byteCount, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      start != MAP_FAILED
    else { throw failure }
    buffer = av_buffer_create(
      start.assumingMemoryBound(to: UInt8.self), byteCount, { _, _ in }, nil,
      AV_BUFFER_FLAG_READONLY)
    (self.file, self.start, self.byteCount) = (file, start, byteCount)
    guard buffer != nil else { throw failure }
  }

  deinit {
    av_buffer_unref(&buffer)
    munmap(start, byteCount)
  }

  /// Makes a packet refer to the reserved addresses of a packet location.
  func fill(
    _ packet: UnsafeMutablePointer<AVPacket>, _ location: PacketLocation
  ) throws(LibAVError) {
    let (end, overflow) = location.position.addingReportingOverflow(Int64(location.byteCount))
    guard location.position >= 0, !overflow, end <= Int64(byteCount),
      let size = Int32(exactly: location.byteCount), let shared = av_buffer_ref(buffer)
    else { throw LibAVError("copy a packet of", file.path, code: CFFmpeg_EINVAL) }
    packet.pointee.buf = shared
    packet.pointee.data = shared.pointee.data + Int(location.position)
    packet.pointee.size = size
  }

  /// The byte offset in the file to which an address belongs.
  ///
  /// Nil for an address of other memory.
  func position(of address: UnsafeRawPointer?) -> Int64? {
    guard let address, address >= UnsafeRawPointer(start),
      address < UnsafeRawPointer(start + byteCount)
    else { return nil }
    return Int64(address - UnsafeRawPointer(start))
  }
}
