// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore
package import OvercrankMovieFormat

extension MovieWriter {
  /// Adds an index entry for a packet that is already in the file.
  ///
  /// For the first packet of a track, pass the packet itself as `first`, because its side data is
  /// needed. Set `isDroppable` if no other packet depends on this one.
  ///
  /// - Throws: `LibAVError` as ``write(_:track:pts:dts:duration:)`` does.
  package mutating func addIndexEntry(
    _ entry: PacketLocation, like first: Packet? = nil, placeholder: PlaceholderBytes, track: Int,
    presentationOffset: Int64 = 0, duration: Int64, isDroppable: Bool = false
  ) throws(LibAVError) {
    let dts = entry.ticks
    let (pts, overflow) = dts.addingReportingOverflow(presentationOffset)
    guard !overflow else { throw LibAVError("index", path, code: CFFmpeg_EINVAL) }
    try check(track, pts: pts, dts: dts, duration: duration, byteCount: entry.byteCount)
    defer { av_packet_unref(scratch) }
    if let first {
      try LibAVError.check(av_packet_copy_props(scratch, first.pointer), "index", path)
    }
    try placeholder.fill(scratch, byteCount: entry.byteCount)
    let keyFlag = entry.isKeyFrame ? AV_PKT_FLAG_KEY : 0
    // The disposable flag makes the muxer write an `sdtp` box, in which droppable samples are
    // marked.
    scratch.pointee.flags = isDroppable ? keyFlag | AV_PKT_FLAG_DISPOSABLE : keyFlag
    stamp(track, pts: pts, dts: dts, duration: duration)
    // In direct mode, the I/O context does not buffer, so the sink receives each packet at once.
    // The sink advances its position by the packet's size and discards the bytes. The local
    // variable works around a bug in Swift 6.3: with the thread sanitizer,
    // `context.pointee.pb.pointee` does not compile if `context` is a property of a noncopyable
    // value.
    let file = context
    file.pointee.pb.pointee.direct = 1
    avio_seek(file.pointee.pb, entry.position, SEEK_SET)
    try LibAVError.check(av_write_frame(context, scratch), "index", path)
  }

  /// Completes the new index and returns its bytes.
  ///
  /// The caller appends them to the file.
  ///
  /// - Throws: `LibAVError` with the operation "index".
  package mutating func finishIndex() throws(LibAVError) -> [UInt8] {
    guard let index, hasHeader, !hasTrailer else { return [] }
    hasTrailer = true
    let file = context
    file.pointee.pb.pointee.direct = 0
    avio_seek(file.pointee.pb, index.start, SEEK_SET)
    try LibAVError.check(av_write_trailer(context), "index", path)
    avio_flush(context.pointee.pb)
    var bytes = index.sink.bytes
    if let captureRate { MovieTags.write(captureRate: captureRate, into: &bytes) }
    return bytes
  }

  /// Writes the clean aperture of a track into a `moov` box.
  ///
  /// - Throws: `LibAVError` with the operation "write the clean aperture of" if the track has no
  ///   sample description.
  package static func write(
    _ aperture: CleanApertureBox.Size, into bytes: inout [UInt8], track: Int, path: String
  ) throws(LibAVError) {
    let movie = Box.list(in: bytes, from: 0, to: bytes.count).first { $0.type == BoxType.movie }
    if let movie {
      let range = Int(movie.start)..<Int(movie.end)
      var index = Array(bytes[range])
      if CleanApertureBox.write(into: &index, track: track, aperture) {
        bytes.replaceSubrange(range, with: index)
        return
      }
    }
    throw LibAVError("write the clean aperture of", path, code: CFFmpeg_EINVAL)
  }
}
