// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMovieFormat

extension MovieWriter {
  /// Adds an index entry for a packet that is already in the file.
  ///
  /// `first` provides the side data of the track's first packet.
  ///
  /// - Throws: `LibAVError` as ``write(_:track:pts:dts:duration:)``.
  package mutating func enter(
    _ entry: PacketLocation, like first: Packet? = nil, placeholder: PlaceholderBytes, track: Int,
    duration: Int64
  ) throws(LibAVError) {
    let time = entry.ticks
    try check(track, pts: time, dts: time, duration: duration, byteCount: entry.byteCount)
    defer { av_packet_unref(scratch) }
    if let first {
      try LibAVError.check(av_packet_copy_props(scratch, first.pointer), "index", path)
    }
    try placeholder.fill(scratch, byteCount: entry.byteCount)
    scratch.pointee.flags = entry.isKeyFrame ? AV_PKT_FLAG_KEY : 0
    stamp(track, pts: time, dts: time, duration: duration)
    // Direct mode: the sink receives the packet's position and discards its bytes. The local
    // variable is needed because Swift 6.3 cannot compile an access through a property of a
    // noncopyable value for the thread sanitizer.
    let file = context
    file.pointee.pb.pointee.direct = 1
    avio_seek(file.pointee.pb, entry.position, SEEK_SET)
    try LibAVError.check(av_write_frame(context, scratch), "index", path)
  }

  /// Completes the new index and returns its bytes, to be appended to the file.
  ///
  /// - Throws: `LibAVError` for "index".
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
}
