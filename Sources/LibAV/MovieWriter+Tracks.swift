// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore
import OvercrankMovieFormat

extension MovieWriter {
  /// Adds a track.
  ///
  /// Call before ``begin()``.
  ///
  /// - Parameters:
  ///   - parameters: The codec parameters. The codec tag is replaced by the tag that this container
  ///     uses.
  ///   - timescale: The number of ticks per second for the track's times.
  ///   - metadata: Tags of the track, such as `language`. If the container has no code for the
  ///     language, it is omitted.
  ///   - displayMatrix: The nine numbers of the display matrix; empty for none.
  ///   - sideData: Side data for all frames. Kinds that the container does not support are omitted.
  /// - Returns: The track index for ``write(_:track:pts:dts:duration:)``.
  /// - Throws: `LibAVError` if memory is unavailable.
  package mutating func addTrack(
    _ parameters: CodecParameters, timescale: Int32, metadata: [String: String] = [:],
    displayMatrix: [Int32] = [], sideData: [TrackSideData] = []
  ) throws(LibAVError) -> Int {
    guard let stream = avformat_new_stream(context, nil) else {
      throw LibAVError("add a track to", path, code: CFFmpeg_ENOMEM)
    }
    try LibAVError.check(
      avcodec_parameters_copy(stream.pointee.codecpar, parameters.pointer), "add a track to", path)
    stream.pointee.codecpar.pointee.codec_tag = chooseTag(for: parameters)
    // libavformat rejects a track whose pixel aspect ratio differs from that of its codec
    // parameters.
    stream.pointee.sample_aspect_ratio = stream.pointee.codecpar.pointee.sample_aspect_ratio
    stream.pointee.time_base = AVRational(num: 1, den: timescale)
    for (key, value) in metadata {
      let stored =
        key == "language" ? TrackLanguage.stored(value, in: settings.container) : value
      if let stored { av_dict_set(&stream.pointee.metadata, key, stored, 0) }
    }
    if displayMatrix.count == 9,
      let data = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, 36)
    {
      displayMatrix.withUnsafeBytes { matrix in
        if let start = matrix.baseAddress {
          UnsafeMutableRawPointer(data).copyMemory(from: start, byteCount: 36)
        }
      }
    }
    for data in sideData where data.isStorable(in: settings.container) {
      data.add(to: stream)
      hasColorProfile = hasColorProfile || data.isColorProfile
      // libavformat writes the boxes for some kinds of side data only in "unofficial" compliance
      // mode.
      context.pointee.strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL
    }
    if settings.container == "mov", ColorBox.isNeeded(for: parameters) {
      fullRangeTrack = (tracks.count, parameters)
    }
    tracks.append(Track(stream: stream, timeBase: AVRational(num: 1, den: timescale)))
    return tracks.count - 1
  }

  /// The codec tag to use instead of libavformat's default, or 0 if the default is suitable.
  func chooseTag(for parameters: CodecParameters) -> UInt32 {
    // libavformat would choose hev1, which some players reject. All parameter sets are in the
    // sample description, so hvc1 is equally valid.
    if parameters.isHVC1 { return CodecParameters.hvc1 }
    // A tag such as that of ProRes names a variant of the codec. As in the program ffmpeg, it is kept if
    // the container has it, or none for the codec. The muxer chooses the tags of these three codecs by
    // their pixels.
    if parameters.isIntraOnly,
      ![AV_CODEC_ID_RAWVIDEO, AV_CODEC_ID_MJPEG, AV_CODEC_ID_DVVIDEO].contains(parameters.codecID),
      let tags = av_guess_format(settings.container, nil, nil)?.pointee.codec_tag
    {
      let tag = parameters.pointer.pointee.codec_tag
      var other: UInt32 = 0
      if tag != 0,
        av_codec_get_id(tags, tag) == parameters.codecID
          || av_codec_get_tag2(tags, parameters.codecID, &other) == 0
      {
        return tag
      }
    }
    guard parameters.isPlainGray, settings.container == "mov" else { return 0 }
    // QuickTime's own 8-bit gray format stores black as 255, and many readers treat its samples as
    // palette indices. Y800 stores black as 0, and readers treat it as gray. libavformat writes
    // Y800 only in "unofficial" compliance mode.
    context.pointee.strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL
    return CodecParameters.y800
  }
}
