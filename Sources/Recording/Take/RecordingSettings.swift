// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankCapture
public import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMovieFormat

/// How the pictures of a take are stored.
public enum RecordingCodec: String, Hashable, Sendable, CaseIterable {
  /// A camera's compressed frames as they are; uncompressed ones as MJPEG.
  case auto
  /// A camera's compressed frames as they are.
  case copy
  /// H.264 by libx264: closed groups, no B-frames, a key frame at least every 0.25 s.
  case h264
  /// JPEG pictures, each by itself.
  case mjpeg
  /// FFV1: lossless, each picture by itself.
  case ffv1
  /// Uncompressed, where MOV readers read it back.
  case raw
}

extension RecordingCodec {
  /// Whether pictures of this mode are stored by this codec as well as it can.
  ///
  /// Copying needs a camera that compresses; what is to be without loss needs one that does not.
  public func suits(_ format: CaptureFormat) -> Bool {
    switch self {
    case .auto, .h264, .mjpeg: true
    case .copy: format.isCompressed
    case .ffv1, .raw: !format.isCompressed
    }
  }
}

/// How the sound of a take is stored.
public enum AudioCodec: String, Hashable, Sendable, CaseIterable {
  /// AAC at 96 kbit/s per channel.
  case aac
  /// Uncompressed 16-bit samples.
  case pcm

  var encoderName: String {
    switch self {
    case .aac: "aac"
    case .pcm: "pcm_s16le"
    }
  }
}

/// What a take is to become.
public struct RecordingSettings: Sendable {
  /// The file; MP4 by its contents where it is named `.mp4` or `.m4v`, else MOV.
  public var path: String
  /// How pictures are stored.
  public var codec = RecordingCodec.auto
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
  func plan(for delivery: FrameDelivery) throws(RecordingError) -> VideoPipelinePlan {
    let plan = try VideoPipelinePlan(codec, for: delivery, in: path)
    if audioCodec == .pcm, MovieContainer(path: path) == .mp4 {
      throw VideoPipelinePlan.refusal(of: "uncompressed sound", in: path)
    }
    return plan
  }
}

/// Why a take could not be recorded, or what went wrong after it began.
public struct RecordingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `output_exists`.
    public let rawValue: String

    /// Makes a kind of this name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A file of this name exists and may not be replaced.
    public static let outputExists = Code(rawValue: "output_exists")
    /// The file cannot be created where it should be.
    public static let cannotCreate = Code(rawValue: "cannot_create")
    /// Another program is writing the file of this name.
    public static let outputBusy = Code(rawValue: "output_busy")
    /// The file was replaced or removed while it was being recorded.
    public static let outputReplaced = Code(rawValue: "output_replaced")
    /// The codec does not go with what the camera delivers.
    public static let codecRefused = Code(rawValue: "codec_refused")
    /// The system has no memory, or no thread, left.
    public static let outOfMemory = Code(rawValue: "out_of_memory")
    /// The disk is full.
    public static let diskFull = Code(rawValue: "disk_full")
    /// The disk or the encoder failed.
    public static let writeFailed = Code(rawValue: "write_failed")
    /// The output is connected to no camera, or to one that has stopped.
    public static let notConnected = Code(rawValue: "not_connected")
    /// No frame arrived that could be stored.
    public static let nothingStored = Code(rawValue: "nothing_stored")
    /// There is no such file.
    public static let notFound = Code(rawValue: "file_not_found")
    /// This user may not change the file.
    public static let noPermission = Code(rawValue: "no_permission")
    /// The file is no recording, or too damaged to be repaired.
    public static let invalidData = Code(rawValue: "invalid_data")
    /// The recording was cut off before its first frame.
    public static let nothingToRecover = Code(rawValue: "nothing_to_recover")
    /// It was stopped before there was anything to keep.
    public static let cancelled = Code(rawValue: "cancelled")
    /// The queue to the file is full.
    public static let notReady = Code(rawValue: "not_ready")
    /// This is not the time to ask for it.
    public static let wrongState = Code(rawValue: "wrong_state")
    /// The file is still being recorded.
    public static let beingRecorded = Code(rawValue: "being_recorded")
  }

  /// What kind of failure this is.
  public let code: Code
  /// What failed, on which file or device, and why: one line.
  public let message: String
  /// What to try next: one line.
  public let hint: String

  /// Makes an error of a kind, with its two lines.
  public init(_ code: Code, _ message: String, hint: String) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message and the hint in one line.
  public var description: String { "\(message); \(hint)" }

  init(_ error: FileCreationError) {
    self.init(
      error.isNameTaken
        ? .outputExists
        : error.isBusy ? .outputBusy : error.isDiskFull ? .diskFull : .cannotCreate,
      error.message, hint: error.hint)
  }

  /// The name of a finished recording is another file's, or nobody's.
  init(replacing file: OpenFile) {
    let isTaken = FileIdentity(ofName: file.path) != nil
    self.init(
      .outputReplaced,
      isTaken
        ? "another file took the place of \(file.path) while it was being recorded"
        : "\(file.path) was removed while it was being recorded",
      hint: file.currentPath.map { "the recording is now \($0)" }
        ?? "record again, and leave the file alone meanwhile")
  }

  init(_ error: CaptureError) {
    self.init(Code(rawValue: error.code.rawValue), error.message, hint: error.hint)
  }

  init(_ error: LibAVError) {
    if [EAGAIN, ENOMEM].contains(error.systemErrorNumber) {
      self.init(.outOfMemory, error.description, hint: "close other programs and try again")
      return
    }
    let isFull = error.isDiskFull
    self.init(
      isFull ? .diskFull : .writeFailed, error.description,
      hint: isFull
        ? "free some space; what was written so far can be played"
        : "check the disk, or choose another codec with --codec")
  }
}
