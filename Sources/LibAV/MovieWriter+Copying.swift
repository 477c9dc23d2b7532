// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

extension MovieWriter {
  /// The end of the packet that was copied last, in its source and in the output.
  struct CopyEnd {
    let source: StoredMedia
    let sourcePosition: Int64
    let position: Int64
  }

  /// The least number of bytes in contiguous packets for which file system blocks are shared.
  ///
  /// Sharing requires a gap before the first block.
  ///
  /// For fewer bytes, these gaps would be too large a part of the file.
  package static let shareableRunBytes: Int64 = 1 << 16

  /// Copies a packet from a source file without reading the packet.
  ///
  /// Use this only for codecs whose packets the muxer neither reads nor changes.
  ///
  /// The flags of `location` are stored, too. The source must have been passed to
  /// ``init(path:settings:copying:)``. `runBytes` returns the number of bytes in this packet and
  /// the following contiguous packets of the source, at least up to ``shareableRunBytes``.
  ///
  /// - Throws: `LibAVError` as ``write(_:track:pts:dts:duration:)`` does, and with the operation
  ///   "read" or "read all packets of" for an error of the source. An error may concern an earlier
  ///   packet.
  package mutating func copy(
    _ location: PacketLocation, of source: StoredMedia, track: Int, pts: Int64, dts: Int64,
    duration: Int64, runBytes: () -> Int64
  ) throws(LibAVError) {
    guard let copying else {
      throw LibAVError("copy a packet of", source.file.path, code: CFFmpeg_EINVAL)
    }
    try check(track, pts: pts, dts: dts, duration: duration, byteCount: location.byteCount)
    defer { av_packet_unref(scratch) }
    try source.fill(scratch, location)
    scratch.pointee.flags =
      (location.isKeyFrame ? AV_PKT_FLAG_KEY : 0)
      | (location.isDiscarded ? AV_PKT_FLAG_DISCARD : 0)
    stamp(track, pts: pts, dts: dts, duration: duration)
    let isNewRun =
      copyEnd.map {
        $0.source !== source || $0.sourcePosition != location.position || $0.position != byteCount()
      } ?? true
    if isNewRun, let block = copying.sharedBlockBytes(source), runBytes() >= Self.shareableRunBytes
    {
      skip(to: location.position % block, of: block)
    }
    // In direct mode, the I/O context does not buffer, so the sink receives the packet's address
    // itself.
    let file = context
    file.pointee.pb.pointee.direct = 1
    let result = LibAVLog.during { av_write_frame(context, scratch) }
    file.pointee.pb.pointee.direct = 0
    if let failure = copying.failure { throw failure }
    try LibAVError.check(result, "write to", path)
    let end = location.position + Int64(location.byteCount)
    copyEnd = CopyEnd(source: source, sourcePosition: end, position: byteCount())
    expectedCopyBytes += Int64(location.byteCount)
    note(track, pts: pts, dts: dts, duration: duration)
  }

  /// Leaves a gap so that the next byte is at a given offset within a file system block.
  private mutating func skip(to offset: Int64, of block: Int64) {
    let position = byteCount()
    let gap = (offset - position % block + block) % block
    guard gap > 0 else { return }
    avio_seek(context.pointee.pb, position + gap, SEEK_SET)
    hasGaps = true
  }

  /// Copies the remaining packets, and closes the file.
  mutating func finishCopying(_ copying: CopyingSink, mediaEnd: Int64) throws(LibAVError) {
    try copying.finish()
    // The muxer writes an unchanged packet from the addresses that are reserved for it, and these
    // bytes are counted. The bytes of a changed packet are elsewhere in memory, so the count is
    // then too low.
    guard copying.copiedBytes == expectedCopyBytes else {
      throw LibAVError("copy packets unchanged to", path, code: CFFmpeg_EINVAL)
    }
    // A copy of the pointer is used, because with the thread sanitizer the compiler produces an
    // invalid module for `free(&context.pointee.pb)` (Swift 6.3.1).
    let file = context
    MuxerSink.free(&file.pointee.pb)
    if hasGaps { try encloseMedia(upTo: mediaEnd) }
  }

  /// Corrects the size of the `mdat` box, which the muxer computed without the gaps.
  private func encloseMedia(upTo end: Int64) throws(LibAVError) {
    let path = path
    let failure = LibAVError("write the size of the media data of", path, code: CFFmpeg_EINVAL)
    let file = try LibAVError.converting { () throws(SystemError) in try MovieBoxes(opening: path) }
    let boxes = file.boxes()
    guard let number = boxes.firstIndex(where: { $0.type == BoxType.media }) else { throw failure }
    var head = BoxBytes()
    var start = boxes[number].start
    if boxes[number].headBytes == 8, let size = UInt32(exactly: end - start) {
      head.append(size)
    } else {
      // A 64-bit size needs 8 more bytes. The muxer reserved these bytes before the `mdat` box.
      if boxes[number].headBytes == 8 {
        guard number > 0, boxes[number - 1].byteCount == 8 else { throw failure }
        start = boxes[number - 1].start
      }
      head.append(UInt32(1))
      head.append(BoxType.media)
      head.append(end - start)
    }
    try LibAVError.converting { () throws(SystemError) in
      try file.file.write(head.bytes, at: start)
    }
  }
}
