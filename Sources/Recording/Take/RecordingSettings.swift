// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
public import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat

/// The encoding of a recording's video.
public enum VideoOutputSettings: Hashable, Sendable {
  /// Copies compressed frames from the camera, and encodes uncompressed frames as MJPEG.
  case automatic
  /// Copies compressed frames from the camera.
  case passthrough
  /// Encodes the frames with this codec.
  ///
  /// Frames from the camera that already have this codec are copied.
  ///
  /// `h264` uses libx264 with closed groups, no B-frames, and a key frame at least every 0.25 s.
  /// Other codecs are `mjpeg`, `ffv1`, and `rawVideo` for the formats that MOV readers support.
  case codec(VideoCodec)
}

extension VideoOutputSettings {
  /// Whether this encoding suits the frames of a camera mode.
  ///
  /// ``passthrough`` copies compressed frames, so it requires a compressed mode. `ffv1` and
  /// `rawVideo` require an uncompressed mode, because a lossless codec cannot restore the quality
  /// that compression has lost. All other encodings suit every mode.
  public func suits(_ format: CaptureFormat) -> Bool {
    switch self {
    case .passthrough: format.isCompressed
    case .codec(.ffv1), .codec(.rawVideo): !format.isCompressed
    case .automatic, .codec: true
    }
  }
}

/// The options of one recording.
public struct RecordingSettings: Sendable {
  /// The path of the file.
  ///
  /// The container is MP4 for `.mp4` and `.m4v`, otherwise MOV.
  public var path: String
  /// The encoding of the video.
  public var video = VideoOutputSettings.automatic
  /// The distance between reference frames, in frames.
  ///
  /// The frames between two reference frames are droppable.
  ///
  /// The value is from 2 to 16, and `video` must be encoded as H.264. A slow player can leave out
  /// the droppable frames, whose `nal_ref_idc` is 0, and still decode the others: a 240 fps
  /// recording with an interval of 8 then plays at 30 fps. Key frames, and the frame before each,
  /// are never droppable. Droppable frames are stored up to this many frames late. If the process
  /// is killed, that many more frames are lost. Nil makes every frame a reference frame.
  public var referenceFrameInterval: Int?
  /// The codec of the recorded audio.
  ///
  /// Nil selects AAC, or PCM for lossless video.
  public var audioCodec: AudioCodec?
  /// Whether audio is recorded if the session has audio.
  public var recordsAudio = true
  /// Whether an existing file may be replaced.
  public var overwrites = false
  /// The title stored in the file's metadata, or nil.
  public var title: String?
  /// Further items of the file's metadata.
  ///
  /// `MovieFileOutput.metadata` changes them during the take. If several items have the same key,
  /// only the last one is stored.
  public var metadata: [MetadataItem] = []
  /// Whether a camera's frame rate is verified for 0.5 s before the take.
  ///
  /// Ignored for the synthetic camera and for files.
  public var verifiesFrameRate = true
  /// Whether frames stay in memory until the end of the take and are written afterwards.
  ///
  /// Use a burst if the data rate exceeds the speed of the disk or the encoder. The take ends when
  /// its frames fill three quarters of the free memory. `MovieFileOutput.preflight()` reports the
  /// longest duration.
  public var isBurst = false
  /// Whether the index is moved to the start of the finished file, for progressive download.
  ///
  /// This copies the file, which temporarily needs twice its space on the disk.
  public var isOptimizedForNetworkUse = false
  /// The limits at which the take ends.
  public var limit = CaptureLimit()
  /// The greatest size of the finished file in bytes.
  ///
  /// The take ends before the file exceeds it.
  public var maxRecordedFileSize: Int64?
  /// The least free disk space in bytes.
  ///
  /// The take ends when less space is free. This is checked five times per second.
  public var minFreeDiskSpaceLimit: Int64?

  /// Creates the settings of a take without limits.
  public init(path: String) { self.path = path }

  /// Creates the empty file at ``path``.
  func makeFile() throws(MediaError) -> MovieFile {
    do throws(CallFailure) {
      return try MovieFile(creating: path, overwrites: overwrites)
    } catch { throw MediaError(creating: error) }
  }

  /// The pipeline through which frames of this format are stored in the file at ``path``.
  func plan(for delivery: FrameDelivery) throws(MediaError) -> VideoPipelinePlan {
    let plan = try VideoPipelinePlan(video, for: delivery, in: path)
      .referencing(everyNth: referenceFrameInterval)
    if audioCodec == .pcm, MovieContainer(recording: path) == .mp4 {
      throw VideoPipelinePlan.refusal(of: "uncompressed audio", in: path)
    }
    return plan
  }
}
