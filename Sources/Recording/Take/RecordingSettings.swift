// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankCapture
public import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat

/// How the pictures of a take are stored.
public enum VideoOutputSettings: Hashable, Sendable {
  /// A camera's compressed frames as they are; uncompressed ones as MJPEG.
  case automatic
  /// A camera's compressed frames as they are.
  case passthrough
  /// By a codec, which encodes them unless they are of it: `h264` by libx264 (closed groups, no
  /// B-frames, a key frame at least every 0.25 s), `mjpeg`, `ffv1`, or `rawVideo` where MOV readers
  /// read it back.
  case codec(VideoCodec)
}

extension VideoOutputSettings {
  /// Whether pictures of this mode are stored so as well as they can be.
  ///
  /// Copying needs a camera that compresses; what is to be without loss needs one that does not.
  public func suits(_ format: CaptureFormat) -> Bool {
    switch self {
    case .passthrough: format.isCompressed
    case .codec(.ffv1), .codec(.rawVideo): !format.isCompressed
    case .automatic, .codec: true
    }
  }
}

/// What a take is to become.
public struct RecordingSettings: Sendable {
  /// The file; MP4 by its contents where it is named `.mp4` or `.m4v`, else MOV.
  public var path: String
  /// How pictures are stored.
  public var video = VideoOutputSettings.automatic
  /// How sound is stored; nil takes AAC, and PCM beside lossless pictures.
  public var audioCodec: AudioCodec?
  /// Whether the sound of a source that has one is recorded.
  public var recordsAudio = true
  /// Whether a file of this name may be replaced.
  public var overwrites = false
  /// What the file says it is called; nil says nothing.
  public var title: String?
  /// Whether a camera's rate is measured for half a second before the take begins; what plays a
  /// camera keeps its rate anyway.
  public var verifiesFrameRate = true
  /// Whether frames are kept in memory until the take is over, and only then written.
  ///
  /// For rates that no disk or encoder can take. The take is over when three quarters of the free
  /// memory are full; `MovieFileOutput.preflight()` tells how long it may surely be.
  public var isBurst = false
  /// Whether the finished file has its index first, so that it plays while it is fetched over a
  /// network; that takes a copy of the file, and as much room on the disk until it is made.
  public var isOptimizedForNetworkUse = false
  /// When the take is over by itself.
  public var limit = CaptureLimit()
  /// The take is over before its finished file would have more bytes than this.
  public var maxRecordedFileSize: Int64?
  /// The take is over when the disk has fewer free bytes than this; it is looked at five times a
  /// second.
  public var minFreeDiskSpaceLimit: Int64?

  /// Makes the settings of a take that goes on until it is stopped.
  public init(path: String) { self.path = path }

  /// How pictures that come like this are stored in this file.
  func plan(for delivery: FrameDelivery) throws(MediaError) -> VideoPipelinePlan {
    let plan = try VideoPipelinePlan(video, for: delivery, in: path)
    if audioCodec == .pcm, MovieContainer(path: path) == .mp4 {
      throw VideoPipelinePlan.refusal(of: "uncompressed sound", in: path)
    }
    return plan
  }
}
