// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore
import OvercrankMovieFormat

/// The location, time and flags of a packet in a file, from the file's index.
package struct PacketLocation: Sendable {
  /// The byte offset of the packet in the file.
  package let position: Int64
  package let byteCount: Int
  /// The decoding time of the packet in track ticks.
  package let ticks: Int64
  /// Whether decoding may start at the packet.
  package let isKeyFrame: Bool
  /// Whether the packet is decoded but not shown, because of an edit list.
  package let isDiscarded: Bool

  /// Returns the location without its key frame flag.
  package func withoutKeyFlag() -> PacketLocation {
    PacketLocation(
      position: position, byteCount: byteCount, ticks: ticks, isKeyFrame: false,
      isDiscarded: isDiscarded)
  }
}

/// The locations of all packets of a track.
package struct PacketIndex: Sendable {
  /// The first packet of the track itself.
  ///
  /// It may contain data that applies to all packets, such as a palette.
  package let first: Packet
  package let locations: [PacketLocation]
}

/// An open movie file, read packet by packet in file order.
package struct Demuxer: ~Copyable {
  package let path: String
  /// libavformat's name of the container, such as `mov,mp4,m4a,3gp,3g2,mj2`.
  package let containerName: String
  /// Whether the file is MOV or MP4, fragmented or not.
  package var isMOV: Bool { containerName.hasPrefix("mov,") }
  package let tracks: [TrackFormat]
  package let metadata: [String: String]
  package let chapters: [Chapter]
  /// The duration of the whole file in microseconds, as libavformat reports it.
  ///
  /// Nil if libavformat reports none.
  package let statedMicroseconds: Int64?

  private let context: UnsafeMutablePointer<AVFormatContext>
  private let watch: ReadWatch
  /// Detects packets of the video track that contain only one field of an interlaced frame.
  ///
  /// Nil if every packet of the track contains a whole frame.
  private let fieldParser: PacketParser?
  private let fieldTrack: Int
  private var fields = FieldPairs<Packet>()
  /// Whether the container also marks packets next to lost bytes as corrupt, not only truncated
  /// packets.
  private let marksLosses: Bool
  /// For each track, the number of ticks by which a frame can be shown after it is decoded; nil in a
  /// container whose clock does not jump.
  private let longestDelays: [Int64]?
  /// For each track, the number of packets that were returned although the container marked them as
  /// corrupt.
  ///
  /// In a transport stream, bytes are missing in or before such a packet. Decoders decode such
  /// packets as far as possible.
  package private(set) var damagedCounts: [Int: Int] = [:]
  /// The number of frames of the video track whose second field has its own parameter sets.
  ///
  /// libavcodec ignores them in part if both fields are in one packet.
  package private(set) var changedFieldCount = 0
  /// The corrections of packet times in a file whose clock restarts.
  ///
  /// While they are set, seeking is impossible.
  package var corrections: TimeCorrections?
  /// The number of packets of each track returned so far; counted only if there are corrections.
  private var returnedCounts: [Int: Int] = [:]

  /// The accepted formats by their libavformat names.
  ///
  /// Files in these formats contain their own media data.
  ///
  /// Playlists, scripts and image patterns are excluded, because they make libavformat open other
  /// files or network connections. Devices are excluded, too.
  package static let formats = [
    "mov", "matroska", "avi", "mpegts", "mpeg", "flv", "asf", "ogg", "mxf", "dv", "ivf", "nut",
    "gxf",
    "rm", "wtv", "cine", "dhav", "h261", "h263", "h264", "hevc", "av1", "obu", "m4v", "mpegvideo",
    "vc1", "dirac", "mjpeg", "mpjpeg", "smjpeg", "yuv4mpegpipe", "gif", "apng", "png_pipe",
    "jpeg_pipe", "webp_pipe", "tiff_pipe", "bmp_pipe", "wav", "w64", "aiff", "caf", "au", "flac",
    "mp3", "aac", "ac3", "eac3", "amr",
  ]

  /// Opens a file and reads its tracks.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - probes: Whether to read the first packets, to find parameters that the headers lack. This
  ///     is unnecessary if the tracks of the movie are already known.
  /// - Throws: `CallFailure` with the operation "open" or "read". `systemNumber` is `ENOENT`
  ///   for a missing file, `ESPIPE` for a pipe or device, `ETIMEDOUT` for a file that libavformat
  ///   would read endlessly, and nil for invalid data.
  package init(opening path: String, probes: Bool = true) throws(CallFailure) {
    try self.init(path, at: path, probes: probes)
  }

  /// Opens a file through an existing descriptor, even if the file's name now belongs to another
  /// file.
  ///
  /// - Throws: `CallFailure` as ``init(opening:probes:)``.
  package init(reopening file: OpenFile, probes: Bool = true) throws(CallFailure) {
    try self.init(file.path, at: file.pathToReopen, probes: probes)
  }

  private init(_ path: String, at location: String, probes: Bool) throws(CallFailure) {
    try Self.checkKind(of: location)
    var opened = avformat_alloc_context()
    guard let context = opened else { throw CallFailure("open", path, code: CFFmpeg_ENOMEM) }
    let watch = ReadWatch()
    watch.watch(context)
    var options: OpaquePointer?
    defer { av_dict_free(&options) }
    av_dict_set(&options, "format_whitelist", Self.formats.joined(separator: ","), 0)
    av_dict_set(&options, "protocol_whitelist", "file", 0)
    // libavformat would parse a name with a colon as a protocol. The prefix "file:" prevents this.
    let result = LibAVLog.during {
      avformat_open_input(&opened, ("file:" + location).systemPath, nil, &options)
    }
    try Self.check(result: result, "open", path, watch)
    do {
      if probes {
        watch.begin()
        let result = LibAVLog.during { avformat_find_stream_info(context, nil) }
        try Self.check(result: result, "read", path, watch)
      }
      var tracks: [TrackFormat] = []
      for index in 0..<Int(context.pointee.nb_streams) {
        guard let stream = context.pointee.streams[index] else { continue }
        tracks.append(try TrackFormat(stream))
      }
      self.tracks = tracks
    } catch {
      avformat_close_input(&opened)
      throw error
    }
    containerName = String(cString: context.pointee.iformat.pointee.name)
    metadata = readDictionary(context.pointee.metadata)
    chapters = (0..<Int(context.pointee.nb_chapters)).compactMap { index in
      guard let chapter = context.pointee.chapters[index]?.pointee, chapter.time_base.den > 0,
        let base = Rational(
          Int128(chapter.time_base.num), over: Int128(chapter.time_base.den)
        ).ifValid,
        let start = (Rational(chapter.start) * base).ifValid,
        let end = (Rational(chapter.end) * base).ifValid
      else { return nil }
      return Chapter(
        title: readDictionary(chapter.metadata)["title"] ?? "", start: start, end: end)
    }
    let duration = context.pointee.duration
    statedMicroseconds = duration == CFFmpeg_NOPTS || duration < 0 ? nil : duration
    self.path = path
    self.context = context
    self.watch = watch
    marksLosses = ["mpegts", "wtv"].contains(containerName)
    longestDelays =
      ["mpegts", "mpeg", "wtv"].contains(containerName)
      ? tracks.map { track in
        let ticks = try? (Rational(10) / track.timeBase).rounded(.towardPositiveInfinity)
        return ticks.flatMap { Int64(exactly: $0) } ?? .max
      } : nil
    // In MOV and MP4, a sample is a complete frame. Only other containers store the two fields of a
    // frame as two packets, which must be joined.
    let track =
      containerName.hasPrefix("mov,") ? nil : tracks.preferred { $0.kind == .video }
    fieldParser = track.flatMap { PacketParser.ofFields($0) }
    fieldTrack = track?.index ?? -1
  }

  deinit {
    var gone: UnsafeMutablePointer<AVFormatContext>? = context
    avformat_close_input(&gone)
    withExtendedLifetime(watch) {}
  }

  /// Throws an error for a path that is not a regular file.
  private static func checkKind(of path: String) throws(CallFailure) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return }  // Opening the file fails, too.
    switch status.st_mode & S_IFMT {
    case S_IFREG: return
    case S_IFDIR: throw CallFailure("open", path, code: -EISDIR)
    default: throw CallFailure("open", path, code: -ESPIPE)
    }
  }

  /// Throws an error if a call failed, or if `watch` interrupted the call.
  private static func check(
    result: Int32, _ operation: String, _ path: String, _ watch: ReadWatch
  ) throws(CallFailure) {
    // FFmpeg calls the watch only before it reads a block of the file. If packets are already
    // buffered, a cancellation is noticed only here.
    if ReadWatch.cancelsAll { throw CallFailure(operation, path, code: CFFmpeg_EXIT) }
    if result < 0, watch.isStalled { throw CallFailure(operation, path, code: -ETIMEDOUT) }
    if result == CFFmpeg_EAGAIN {
      // libavformat found no packet in the file. No resource is missing.
      throw CallFailure(
        operation, path, code: result, kind: .invalidData, logLine: LibAVLog.takeLine())
    }
    try CallFailure.checkData(result: result, operation, path)
  }

  /// Returns the next packet of any track.
  ///
  /// Returns nil at the end of the file.
  ///
  /// If the container stores the two fields of a frame as two packets, they are returned as one
  /// packet.
  ///
  /// - Throws: `CallFailure` with the operation "read" if the file cannot be read further.
  package mutating func nextPacket() throws(CallFailure) -> Packet? {
    guard let corrections else { return try wholePacket() }
    guard let packet = try wholePacket() else { return nil }
    let number = returnedCounts[packet.trackIndex, default: 0]
    returnedCounts[packet.trackIndex] = number + 1
    let ticks = corrections.ticks(ofPacket: number, track: packet.trackIndex)
    return ticks == 0 ? packet : try packet.moved(by: ticks)
  }

  /// Returns the next whole packet, with the times as stored in the file.
  private mutating func wholePacket() throws(CallFailure) -> Packet? {
    guard let fieldParser else { return try storedPacket() }
    let lengthSize = tracks[fieldTrack].parameters.unitLengthSize
    while true {
      if let packet = fields.next() { return packet }
      guard let packet = try storedPacket() else {
        fields.finish()
        return fields.next()
      }
      let isOther = packet.trackIndex != fieldTrack
      var changed = 0
      try fields.append(packet, isOther ? .otherTrack : fieldParser.fieldContent(of: packet)) {
        first, second throws(CallFailure) in
        let joined = try first.joined(with: second)
        if joined.parameterChange(lengthSize) != nil { changed += 1 }
        return joined
      }
      changedFieldCount += changed
    }
  }

  /// Returns the next packet as the container stores it, without joining fields.
  private mutating func storedPacket() throws(CallFailure) -> Packet? {
    guard let packet = av_packet_alloc() else {
      throw CallFailure("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let owned = Packet(owning: packet)
    watch.begin()
    var result = LibAVLog.during { av_read_frame(context, packet) }
    // For a transport stream, av_read_frame returns EAGAIN after 64 KiB without a packet. The
    // function continues when it is called again, which is done as long as the read position
    // advances.
    var position = Int64(-1)
    while result == CFFmpeg_EAGAIN, let io = context.pointee.pb, io.pointee.pos != position {
      position = io.pointee.pos
      result = LibAVLog.during { av_read_frame(context, packet) }
    }
    if result == CFFmpeg_EOF, !watch.isStalled, !ReadWatch.cancelsAll {
      // libavformat reports an I/O error as the end of the file. Only the I/O context contains the
      // real error.
      if let io = context.pointee.pb, io.pointee.error < 0, io.pointee.error != CFFmpeg_EOF {
        throw CallFailure("read", path, code: io.pointee.error, logLine: LibAVLog.takeLine())
      }
      return nil
    }
    try Self.check(result: result, "read", path, watch)
    if marksLosses, packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 {
      packet.pointee.flags &= ~AV_PKT_FLAG_CORRUPT
      damagedCounts[owned.trackIndex, default: 0] += 1
    }
    forgetGuessedDecodeTime(of: packet)
    return owned
  }

  /// Removes a decode time that libavformat cannot have read.
  ///
  /// It derives a missing one from the packets before, also across a jump of the clock.
  private borrowing func forgetGuessedDecodeTime(of packet: UnsafeMutablePointer<AVPacket>) {
    guard let longestDelays, longestDelays.indices.contains(Int(packet.pointee.stream_index)),
      packet.pointee.pts != CFFmpeg_NOPTS, packet.pointee.dts != CFFmpeg_NOPTS,
      packet.pointee.pts &- packet.pointee.dts > longestDelays[Int(packet.pointee.stream_index)]
    else { return }
    packet.pointee.dts = CFFmpeg_NOPTS
  }

  /// Whether the header declares a track as encrypted.
  ///
  /// In MOV and MP4, encryption is declared for each packet instead, so the result is false.
  package func isEncrypted(track: Int) -> Bool {
    guard !isMOV, tracks.indices.contains(track),
      let stream = context.pointee.streams[track]
    else { return false }
    return av_stream_get_side_data(stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, nil) != nil
  }

  /// Switches to returning packets and times exactly as stored, without parsing.
  ///
  /// Use this for codecs with one frame per packet, for which parsing is unnecessary.
  package func readAsStored() {
    context.pointee.flags |= AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN
  }

  /// The number of packets and the duration of a track, according to the part of the index that was
  /// read so far.
  ///
  /// The index of a fragmented file grows while the file is read. Packets that an edit list drops
  /// are not counted.
  package func index(ofTrack track: Int) -> (packetCount: Int, ticks: Int64?) {
    guard (0..<Int(context.pointee.nb_streams)).contains(track),
      let stream = context.pointee.streams[track]
    else { return (0, nil) }
    let ticks = stream.pointee.duration
    return (
      Int(avformat_index_get_entries_count(stream)),
      ticks == CFFmpeg_NOPTS || ticks <= 0 ? nil : ticks
    )
  }

  /// Reads to the end of the file, and returns the packet index of each track.
  ///
  /// The result contains the first packet of each track, but no other packets.
  ///
  /// No packets can be read afterwards. Throws the errors of ``nextPacket()``.
  package mutating func packetIndices() throws(CallFailure) -> [Int: PacketIndex] {
    var firsts: [Int: Packet] = [:]
    while firsts.count < tracks.count, let packet = try nextPacket() {
      if firsts[packet.trackIndex] == nil { firsts[packet.trackIndex] = packet }
      context.pointee.streams[packet.trackIndex]?.pointee.discard = AVDISCARD_ALL
    }
    while try nextPacket() != nil {}
    var result: [Int: PacketIndex] = [:]
    for (track, first) in firsts {
      guard let stream = context.pointee.streams[track] else { continue }
      result[track] = PacketIndex(first: first, locations: Self.locations(of: stream))
    }
    return result
  }

  private static func locations(of stream: UnsafeMutablePointer<AVStream>) -> [PacketLocation] {
    (0..<avformat_index_get_entries_count(stream)).compactMap { index in
      guard let entry = avformat_index_get_entry(stream, index)?.pointee else { return nil }
      return PacketLocation(
        position: entry.pos, byteCount: Int(entry.size), ticks: entry.timestamp,
        isKeyFrame: entry.flags & AVINDEX_KEYFRAME != 0,
        isDiscarded: entry.flags & AVINDEX_DISCARD_FRAME != 0)
    }
  }

  /// The index entries of a track's packets, from the part of the index that was read so far.
  package func locations(ofTrack track: Int) -> [PacketLocation] {
    guard tracks.indices.contains(track), let stream = context.pointee.streams[track] else {
      return []
    }
    return Self.locations(of: stream)
  }

  /// Skips a track's packets without reading them.
  ///
  /// Either all packets are skipped, or all except the key frames.
  package mutating func skip(track: Int, exceptKeyFrames: Bool) {
    guard tracks.indices.contains(track) else { return }
    context.pointee.streams[track]?.pointee.discard =
      exceptKeyFrames ? AVDISCARD_NONKEY : AVDISCARD_ALL
  }

  /// Seeks to the last key frame at or before a time, in track ticks.
  ///
  /// - Throws: `CallFailure` with the operation "seek in".
  package mutating func seek(track: Int, toKeyFrameBefore ticks: Int64) throws(CallFailure) {
    try seek(track, ticks, flags: AVSEEK_FLAG_BACKWARD)
  }

  /// Seeks to the last packet at or before a time, in track ticks.
  ///
  /// - Throws: `CallFailure` with the operation "seek in".
  package mutating func seek(track: Int, toPacketBefore ticks: Int64) throws(CallFailure) {
    try seek(track, ticks, flags: AVSEEK_FLAG_BACKWARD | AVSEEK_FLAG_ANY)
  }

  private mutating func seek(_ track: Int, _ ticks: Int64, flags: Int32) throws(CallFailure) {
    guard corrections == nil else { throw CallFailure("seek in", path, code: -ESPIPE) }
    watch.begin()
    let result = LibAVLog.during { av_seek_frame(context, Int32(clamping: track), ticks, flags) }
    try Self.check(result: result, "seek in", path, watch)
    fields.reset()
  }
}
