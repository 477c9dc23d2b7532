// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMovieFormat

/// Side data for all frames of a track, such as HDR metadata or a spherical projection.
package struct TrackSideData: Sendable {
  private let type: AVPacketSideDataType
  private let bytes: [UInt8]

  /// The kinds of side data that are copied to the output.
  ///
  /// The names appear in warnings about side data that the output format cannot store.
  private static let kinds:
    [(type: AVPacketSideDataType, frame: AVFrameSideDataType?, name: String)] =
      [
        (
          AV_PKT_DATA_MASTERING_DISPLAY_METADATA, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
          "HDR10 mastering display"
        ),
        (AV_PKT_DATA_CONTENT_LIGHT_LEVEL, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL, "HDR10 light level"),
        (AV_PKT_DATA_ICC_PROFILE, AV_FRAME_DATA_ICC_PROFILE, "ICC profile"),
        (AV_PKT_DATA_DOVI_CONF, nil, "Dolby Vision configuration"),
        (AV_PKT_DATA_STEREO3D, nil, "stereoscopic layout"),
        (AV_PKT_DATA_SPHERICAL, nil, "spherical projection"),
      ]

  /// The name of this kind of side data, for a warning that the output does not contain it.
  package var name: String { Self.kinds.first { $0.type == type }?.name ?? "side data" }

  /// Whether MOV or MP4 supports this side data.
  package func isStorable(in container: String) -> Bool {
    // libavformat writes stereoscopic and spherical side data to MP4, but not to MOV.
    container == "mp4" || isDolbyVision
      || [
        AV_PKT_DATA_MASTERING_DISPLAY_METADATA, AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
        AV_PKT_DATA_ICC_PROFILE,
      ].contains(type)
  }

  /// Whether the side data is an ICC color profile (ICC.1).
  var isColorProfile: Bool { type == AV_PKT_DATA_ICC_PROFILE }

  /// Whether the side data is the configuration of Dolby Vision.
  package var isDolbyVision: Bool { type == AV_PKT_DATA_DOVI_CONF }

  /// The configuration of Dolby Vision; nil for other side data.
  package var dolbyVision: (profile: Int, level: Int, compatibility: Int)? {
    dolbyVisionRecord.map {
      (Int($0.dv_profile), Int($0.dv_level), Int($0.dv_bl_signal_compatibility_id))
    }
  }

  private var dolbyVisionRecord: AVDOVIDecoderConfigurationRecord? {
    guard isDolbyVision, bytes.count >= MemoryLayout<AVDOVIDecoderConfigurationRecord>.size else {
      return nil
    }
    return bytes.withUnsafeBytes {
      $0.loadUnaligned(as: AVDOVIDecoderConfigurationRecord.self)
    }
  }

  /// The `dvcC` or `dvvC` box of Dolby Vision, which libavformat writes to MP4, but not to MOV.
  ///
  /// Nil for other side data.
  var dolbyVisionBox: (type: UInt32, bytes: [UInt8])? {
    dolbyVisionRecord.map { record in
      let type: UInt32 = record.dv_profile > 7 ? 0x6476_7643 : 0x6476_6343
      let layers = [record.rpu_present_flag, record.el_present_flag, record.bl_present_flag]
      var made = BoxBytes()
      made.box(type) { box in
        box.append(record.dv_version_major)
        box.append(record.dv_version_minor)
        box.append(
          layers.reduce(UInt16(record.dv_profile) << 6 | UInt16(record.dv_level & 0x3F)) {
            $0 << 1 | UInt16($1 & 1)
          })
        box.append(record.dv_bl_signal_compatibility_id << 4)
        box.append(bytes: Array(repeating: 0, count: 19))
      }
      return (type, made.bytes)
    }
  }

  /// Whether the side data is still true if the frames are encoded again.
  ///
  /// Dolby Vision needs metadata in each frame, which no encoder here writes.
  package var survivesEncoding: Bool { !isDolbyVision }

  /// Whether both are of one kind.
  package func isSameKind(as other: TrackSideData) -> Bool { type == other.type }

  static func all(of stream: UnsafeMutablePointer<AVStream>) -> [TrackSideData] {
    kinds.compactMap { kind in
      var size = 0
      guard let data = av_stream_get_side_data(stream, kind.type, &size), size > 0 else {
        return nil
      }
      return TrackSideData(
        type: kind.type, bytes: Array(UnsafeBufferPointer(start: data, count: size)))
    }
  }

  /// Returns the side data of a frame, without the kinds that cannot be stored for a whole track.
  package static func all(of frame: MediaFrame) -> [TrackSideData] {
    kinds.compactMap { kind in
      guard let type = kind.frame,
        let data = av_frame_get_side_data(frame.pointer, type)?.pointee, data.size > 0
      else { return nil }
      return TrackSideData(
        type: kind.type, bytes: Array(UnsafeBufferPointer(start: data.data, count: data.size)))
    }
  }

  /// Adds the side data to an output track.
  func add(to stream: UnsafeMutablePointer<AVStream>) {
    guard let position = av_stream_new_side_data(stream, type, bytes.count) else { return }
    bytes.withUnsafeBytes { buffer in
      if let start = buffer.baseAddress {
        UnsafeMutableRawPointer(position).copyMemory(from: start, byteCount: bytes.count)
      }
    }
  }
}

extension AVColorTransferCharacteristic {
  /// Whether this is PQ (SMPTE ST 2084) or HLG (ARIB STD-B67).
  var isHighDynamicRange: Bool {
    self == AVCOL_TRC_SMPTE2084 || self == AVCOL_TRC_ARIB_STD_B67
  }
}

extension CodecParameters {
  /// Whether the transfer function is PQ or HLG.
  package var isHighDynamicRange: Bool { pointer.pointee.color_trc.isHighDynamicRange }
  /// Whether the transfer function is PQ (HDR10, SMPTE ST 2084).
  package var isPerceptuallyQuantized: Bool {
    pointer.pointee.color_trc == AVCOL_TRC_SMPTE2084
  }
}
