// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Where a packet lies in its file, and what the index says of it.
package struct PacketLocation: Sendable {
  /// Bytes from the beginning of the file.
  package let position: Int64
  package let byteCount: Int
  /// When it is decoded, in ticks of its track.
  package let ticks: Int64
  /// Whether decoding may start here.
  package let isKeyFrame: Bool
  /// Whether it is decoded but not shown, as an edit list asks.
  package let isDiscarded: Bool
}

/// Where all packets of a track lie.
package struct PacketPlaces: Sendable {
  /// The first packet itself, since it may carry what holds for all, such as a palette.
  package let first: Packet
  package let places: [PacketLocation]
}

/// An open movie file that gives its packets in the order they are stored.
package struct Demuxer: ~Copyable {
  package let path: String
  /// libav's name of the container: `mov,mp4,m4a,3gp,3g2,mj2`.
  package let containerName: String
  /// Whether it is a MOV or MP4 file, in fragments or not.
  package var isMOV: Bool { containerName.hasPrefix("mov,") }
  package let tracks: [TrackFormat]
  package let metadata: [String: String]
  package let chapters: [Chapter]
  /// The duration the file states, in microseconds; nil where it states none.
  package let statedMicroseconds: Int64?

  private let context: UnsafeMutablePointer<AVFormatContext>
  private let watch: ReadWatch
  private var fields: FieldPairs?

  /// The formats that are read, by libav's names: those that hold their own pictures or sound.
  ///
  /// Others are playlists, scripts and descriptions, which have libav open further files or the
  /// network; patterns of file names; and devices.
  package static let formats = [
    "mov", "matroska", "avi", "mpegts", "mpeg", "flv", "asf", "ogg", "mxf", "dv", "ivf", "nut",
    "gxf",
    "rm", "wtv", "cine", "dhav", "h261", "h263", "h264", "hevc", "av1", "obu", "m4v", "mpegvideo",
    "vc1", "dirac", "mjpeg", "mpjpeg", "smjpeg", "yuv4mpegpipe", "gif", "apng", "png_pipe",
    "jpeg_pipe", "webp_pipe", "tiff_pipe", "bmp_pipe", "wav", "w64", "aiff", "caf", "au", "flac",
    "mp3", "aac", "ac3", "eac3", "amr",
  ]

  /// Opens a file and reads what its tracks are.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - probes: Whether the first packets are read to learn what the headers leave out; not needed
  ///     to read the packets of a movie that is known already.
  /// - Throws: `LibAVError` for "open" or "read"; its `systemErrorNumber` tells a missing file
  ///   from one that is no movie, `ESPIPE` is a pipe or a device, and `ETIMEDOUT` a file that
  ///   libavformat reads in circles.
  package init(opening path: String, probes: Bool = true) throws(LibAVError) {
    try self.init(path, at: path, probes: probes)
  }

  /// Opens a file that is open, whatever has its name by now.
  ///
  /// - Throws: `LibAVError` as ``init(opening:probes:)``.
  package init(reopening file: OpenFile, probes: Bool = true) throws(LibAVError) {
    try self.init(file.path, at: file.pathToReopen, probes: probes)
  }

  private init(_ path: String, at place: String, probes: Bool) throws(LibAVError) {
    try Self.checkKind(of: place)
    var opened = avformat_alloc_context()
    guard let context = opened else { throw LibAVError("open", path, code: CFFmpeg_ENOMEM) }
    let watch = ReadWatch()
    watch.watch(context)
    var options: OpaquePointer?
    defer { av_dict_free(&options) }
    av_dict_set(&options, "format_whitelist", Self.formats.joined(separator: ","), 0)
    av_dict_set(&options, "protocol_whitelist", "file", 0)
    // "file:" keeps a name with a colon from being taken for a protocol.
    let result = LibAVLog.during {
      avformat_open_input(&opened, ("file:" + place).systemPath, nil, &options)
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
    // A movie's samples are whole frames.
    fields = isMOV ? nil : tracks.first { $0.kind == .video }.flatMap { FieldPairs($0) }
  }

  deinit {
    var gone: UnsafeMutablePointer<AVFormatContext>? = context
    avformat_close_input(&gone)
    withExtendedLifetime(watch) {}
  }

  /// Throws where a path is no file that can be read more than once.
  private static func checkKind(of path: String) throws(LibAVError) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return }  // libav says why.
    switch status.st_mode & S_IFMT {
    case S_IFREG: return
    case S_IFDIR: throw LibAVError("open", path, code: -EISDIR)
    default: throw LibAVError("open", path, code: -ESPIPE)
    }
  }

  /// Throws where a call failed, or the watch ended it.
  private static func check(
    result: Int32, _ operation: String, _ path: String, _ watch: ReadWatch
  ) throws(LibAVError) {
    if watch.isCancelled { throw LibAVError(operation, path, code: CFFmpeg_EXIT) }
    if result < 0, watch.isStalled { throw LibAVError(operation, path, code: -ETIMEDOUT) }
    try LibAVError.checkData(result: result, operation, path)
  }

  /// The next packet of any track, or nil at the end of the file.
  ///
  /// The two fields of a frame are one packet.
  ///
  /// - Throws: `LibAVError` for "read" when the file cannot be read further.
  package mutating func nextPacket() throws(LibAVError) -> Packet? {
    guard fields != nil else { return try storedPacket() }
    while true {
      if let packet = fields?.next() { return packet }
      guard let packet = try storedPacket() else {
        fields?.finish()
        return fields?.next()
      }
      try fields?.append(packet)
    }
  }

  /// The next packet as the container stores it.
  private func storedPacket() throws(LibAVError) -> Packet? {
    guard let packet = av_packet_alloc() else {
      throw LibAVError("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let owned = Packet(owning: packet)
    watch.begin()
    var result = LibAVLog.during { av_read_frame(context, packet) }
    // A transport stream gives up after 64 KiB without a packet, and goes on when asked again.
    var position = Int64(-1)
    while result == CFFmpeg_EAGAIN, let io = context.pointee.pb, io.pointee.pos != position {
      position = io.pointee.pos
      result = LibAVLog.during { av_read_frame(context, packet) }
    }
    if result == CFFmpeg_EOF, !watch.isStalled, !watch.isCancelled {
      // libav calls the end of a broken transfer an end too; the I/O context knows better.
      if let io = context.pointee.pb, io.pointee.error < 0, io.pointee.error != CFFmpeg_EOF {
        throw LibAVError("read", path, code: io.pointee.error, logLine: LibAVLog.takeLine())
      }
      return nil
    }
    try Self.check(result: result, "read", path, watch)
    return owned
  }

  /// Whether a track's packets are encrypted, as far as its head says.
  ///
  /// In a movie each packet says so itself: some may be plain.
  package func isEncrypted(track: Int) -> Bool {
    guard !isMOV, tracks.indices.contains(track),
      let stream = context.pointee.streams[track]
    else { return false }
    return av_stream_get_side_data(stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, nil) != nil
  }

  /// Gives packets from now on as they are stored, with the times that are stored, and looks no
  /// further into them.
  ///
  /// For codecs of which a container's packet is a picture: parsing can then tell nothing more.
  package func readAsStored() {
    context.pointee.flags |= AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN
  }

  /// What the file's index says of a track, as far as it has been read up to now.
  ///
  /// A file in fragments says it piece by piece: ask again at the end. What an edit list drops
  /// is left out.
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

  /// Reads the index of all tracks to the end of the file, and of each track's packets only the
  /// first.
  ///
  /// There are no packets to be had afterwards. Failures are those of ``nextPacket()``.
  package mutating func packetPlaces() throws(LibAVError) -> [Int: PacketPlaces] {
    var firsts: [Int: Packet] = [:]
    while firsts.count < tracks.count, let packet = try nextPacket() {
      if firsts[packet.trackIndex] == nil { firsts[packet.trackIndex] = packet }
      context.pointee.streams[packet.trackIndex]?.pointee.discard = AVDISCARD_ALL
    }
    while try nextPacket() != nil {}
    var result: [Int: PacketPlaces] = [:]
    for (track, first) in firsts {
      guard let stream = context.pointee.streams[track] else { continue }
      result[track] = PacketPlaces(first: first, places: Self.places(of: stream))
    }
    return result
  }

  private static func places(of stream: UnsafeMutablePointer<AVStream>) -> [PacketLocation] {
    (0..<avformat_index_get_entries_count(stream)).compactMap { index in
      guard let entry = avformat_index_get_entry(stream, index)?.pointee else { return nil }
      return PacketLocation(
        position: entry.pos, byteCount: Int(entry.size), ticks: entry.timestamp,
        isKeyFrame: entry.flags & AVINDEX_KEYFRAME != 0,
        isDiscarded: entry.flags & AVINDEX_DISCARD_FRAME != 0)
    }
  }

  /// Where the packets of a track lie, as far as the index has been read up to now.
  package func places(ofTrack track: Int) -> [PacketLocation] {
    guard tracks.indices.contains(track), let stream = context.pointee.streams[track] else {
      return []
    }
    return Self.places(of: stream)
  }

  /// Passes over packets of a track from now on, without reading them: all of them, or all but
  /// the key frames.
  package mutating func skip(track: Int, exceptKeyFrames: Bool) {
    guard tracks.indices.contains(track) else { return }
    context.pointee.streams[track]?.pointee.discard =
      exceptKeyFrames ? AVDISCARD_NONKEY : AVDISCARD_ALL
  }

  /// Goes to the last key frame at or before a time of a track, in its ticks.
  ///
  /// - Throws: `LibAVError` for "seek in".
  package mutating func seek(track: Int, toKeyFrameBefore ticks: Int64) throws(LibAVError) {
    try LibAVError.check(
      av_seek_frame(context, Int32(clamping: track), ticks, AVSEEK_FLAG_BACKWARD), "seek in",
      path)
    fields?.reset()
  }
}
