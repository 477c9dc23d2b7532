// SPDX-License-Identifier: Apache-2.0

public import OvercrankCameraControls
public import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

/// The destination to which photos are written.
public enum PhotoDestination: Sendable {
  /// Memory: the bytes of each file are in ``Photo/data``.
  case memory
  /// The file with this path, for a single photo.
  case file(String, overwrites: Bool = false)
  /// One file for each photo; the closure returns the path of the file.
  ///
  /// The closure is called on the thread that writes the files.
  case files(overwrites: Bool = false, path: @Sendable (Photo) -> String)
  /// A new file in the user's directory for images, such as `~/Pictures/IMG_20260131_140509.jpg`.
  ///
  /// The directory is `XDG_PICTURES_DIR` of xdg-user-dirs, which is created if it does not exist.
  case userDirectory

  /// Whether existing files may be replaced.
  var overwrites: Bool {
    switch self {
    case .file(_, let overwrites), .files(let overwrites, _): overwrites
    case .memory, .userDirectory: false
    }
  }
}

/// The priority of an encoded photo: its speed or its quality.
///
/// Corresponds to `AVCapturePhotoOutput.QualityPrioritization`.
public enum QualityPrioritization: String, Hashable, Sendable, CaseIterable {
  /// A JPEG quality of 80, and no thumbnail inside the file.
  case speed
  /// A JPEG quality of 90.
  case balanced
  /// A JPEG quality of 97.
  case quality

  /// The JPEG quality on the scale of the Independent JPEG Group.
  var jpegQuality: Int {
    switch self {
    case .speed: 80
    case .balanced: 90
    case .quality: 97
    }
  }
}

/// The options of one capture of photos.
///
/// Each settings value is for a single capture. Copies of a value have the same ``uniqueID``, and
/// the output accepts only one of them.
public struct PhotoSettings: Sendable {
  private final class Token: Sendable {
    static let last = Atomic<Int64>(0)
    let id = Token.last.wrappingAdd(1, ordering: .relaxed).newValue
    let isUsed = Atomic<Bool>(false)
  }

  private let token = Token()

  /// The number that identifies this capture in this process.
  ///
  /// Each ``PhotoEvent`` contains this number.
  public var uniqueID: Int64 { token.id }
  /// The format of the photo files.
  public var format: PhotoFormat
  /// The JPEG quality from 1 to 100, or nil.
  ///
  /// If nil, a JPEG frame from the camera keeps its compressed data, and other frames are encoded
  /// with the quality of ``photoQualityPrioritization``. If set, every frame is encoded. The scale is
  /// that of the Independent JPEG Group. Ignored for PNG.
  public var quality: Int?
  /// The priority of an encoded photo: its speed or its quality.
  ///
  /// Compressed data of the camera, which is kept, is the same in each case.
  public var photoQualityPrioritization = QualityPrioritization.balanced
  /// The pixel format and size of a preview image, such as for a thumbnail on the screen.
  ///
  /// ``Photo/previewPixelBuffer`` is this image. Nil makes none. It is converted before the photo is
  /// encoded, and has the rotation, mirroring and zoom of the connection. Without a pixel format, it
  /// has ``PixelFormat/bgra``.
  public var previewPhotoFormat: VideoDataSettings?
  /// The number of photos.
  ///
  /// Without an ``interval``, several photos are a burst of consecutive frames.
  public var photoCount = 1
  /// The time between the photos of a time lapse.
  ///
  /// Nil for a burst.
  ///
  /// The photos are scheduled at multiples of the interval after the first frame, so a late photo
  /// does not delay the following ones.
  public var interval: MediaTime?
  /// The exposures of a bracket, with one photo for each.
  ///
  /// Empty for a single exposure.
  ///
  /// Each exposure is set, and its photo is taken after the camera has had time to apply it. After
  /// the last photo, the camera's previous exposure is restored.
  public var bracket: [BracketedExposure] = []
  /// Whether the camera's light is on for the photos.
  ///
  /// The torch is switched on some frames before the photos, and off after them. If the camera has
  /// a flash but no torch, the flash is fired. With a light, photos are taken later than requested.
  public var flashMode = FlashMode.off
  /// Whether the camera takes the photo in its largest mode.
  ///
  /// The default is false, so that the photo is a frame of the running stream. If true and the
  /// camera has a larger mode, the session restarts the camera in that mode, takes the photo, and
  /// restores the previous mode and rate. Other outputs get no frames meanwhile. A running take
  /// ends with the reason `reconfigured`. If `SegmentSettings.reconnectTimeout` is set, the take
  /// continues in its next file instead, and its ledger contains the gap.
  public var isHighResolutionPhotoEnabled = false
  /// Whether a JPEG file contains a thumbnail of at most 160 by 160 pixels.
  public var hasThumbnail = true
  /// The geographic location to store, or nil.
  public var location: GeographicLocation?
  /// Exif values by name.
  ///
  /// They replace values that are known from the camera.
  public var properties: [String: String] = [:]
  /// XMP values by qualified name, such as `dc:title`, for a JPEG or HEIC file.
  ///
  /// The namespaces are `dc`, `xmp`, `xmpRights` and `photoshop`. `dc:subject` contains keywords,
  /// separated by commas. Ignored for other formats.
  public var xmp: [String: String] = [:]
  /// The options of a Live Photo, or nil for a still photo.
  ///
  /// A Live Photo consists of a single photo, and requires `PhotoOutput.isLivePhotoCaptureEnabled`.
  public var livePhoto: LivePhotoSettings?
  /// The destination of the photos.
  public var destination: PhotoDestination

  /// Creates settings with a new ``uniqueID``.
  public init(format: PhotoFormat = .jpeg, destination: PhotoDestination = .memory) {
    (self.format, self.destination) = (format, destination)
  }

  /// Creates settings with the same options as others, but with a new ``uniqueID``.
  public init(from other: PhotoSettings) {
    self.init(format: other.format, destination: other.destination)
    quality = other.quality
    photoCount = other.photoCount
    interval = other.interval
    hasThumbnail = other.hasThumbnail
    location = other.location
    properties = other.properties
    xmp = other.xmp
    livePhoto = other.livePhoto
    bracket = other.bracket
    flashMode = other.flashMode
    isHighResolutionPhotoEnabled = other.isHighResolutionPhotoEnabled
    photoQualityPrioritization = other.photoQualityPrioritization
    previewPhotoFormat = other.previewPhotoFormat
  }

  /// The number of photos that the capture takes.
  var expectedPhotoCount: Int { bracket.isEmpty ? photoCount : bracket.count }

  /// The interval between photos in nanoseconds, or 0 for a burst.
  var intervalNanoseconds: Int64 {
    interval.map { max(1, (try? $0.nanoseconds(.halfAwayFromZero)) ?? .max) } ?? 0
  }

  /// Marks the settings as used.
  ///
  /// Returns false if the settings were already used.
  func use() -> Bool { !token.isUsed.exchange(true, ordering: .acquiringAndReleasing) }

  /// Checks the options that do not depend on the camera.
  func check() throws(MediaError) {
    func refuse(_ what: String, _ recovery: Recovery) -> MediaError {
      MediaError(.badConfiguration, "photo \(uniqueID): \(what)", recovery: recovery)
    }
    if let quality, !(1...100).contains(quality) {
      throw refuse("the quality \(quality) is not from 1 to 100", "choose one from 1 to 100")
    }
    try previewPhotoFormat?.check()
    if photoCount < 1 { throw refuse("\(photoCount) photos", "take at least one") }
    if let interval, interval <= .zero {
      throw refuse("the interval is not above zero", "choose a longer interval")
    }
    if !bracket.isEmpty, photoCount > 1 || livePhoto != nil {
      throw refuse("a bracket has one photo of each exposure", "choose a bracket or a series")
    }
    if expectedPhotoCount > 1, case .file(let path, _) = destination {
      throw refuse(
        "all \(expectedPhotoCount) photos would have the name \(path)",
        "choose a name for each file")
    }
    if let name = xmp.keys.first(where: { !XMPPacket.isValid($0) }) {
      throw refuse("\(name) is not an XMP name", "choose one such as dc:title")
    }
    if livePhoto != nil, photoCount > 1 {
      throw refuse("a Live Photo has one frame", "take one photo at a time")
    }
    if livePhoto != nil, isHighResolutionPhotoEnabled {
      throw refuse("the movie of a Live Photo has one mode", "choose a Live Photo or a large photo")
    }
    if livePhoto != nil, livePhoto?.moviePath == nil, case .memory = destination {
      throw refuse("the movie has no path", "name a file for the movie or for the photo")
    }
  }
}

/// The settings of a capture, with the values that its camera determines.
public struct ResolvedPhotoSettings: Hashable, Sendable {
  /// The number that identifies the capture.
  public let uniqueID: Int64
  /// The format of the photo files.
  public let format: PhotoFormat
  /// The width in pixels of the stored images.
  ///
  /// A JPEG file stores the rotation of the connection as Exif's `Orientation`, which viewers apply.
  public let width: Int
  /// The height in pixels of the stored images.
  public let height: Int
  /// The number of photos, unless the capture ends early.
  public let expectedPhotoCount: Int
  /// Whether the compressed data of the camera's JPEG frames is kept.
  public let keepsCompressedData: Bool
  /// The width in pixels of a Live Photo's movie, or nil for a still photo.
  public let livePhotoMovieWidth: Int?
  /// The height in pixels of a Live Photo's movie, or nil for a still photo.
  public let livePhotoMovieHeight: Int?
}

/// The exposure of one photo of a bracket.
public enum BracketedExposure: Hashable, Sendable {
  /// Automatic exposure with a compensation in thousandths of an EV.
  ///
  /// Corresponds to `AVCaptureAutoExposureBracketedStillImageSettings`.
  case automatic(bias: Int64)
  /// Manual exposure, with the gain in the driver's unit.
  ///
  /// A nil duration or gain keeps the current value.
  ///
  /// Corresponds to `AVCaptureManualExposureBracketedStillImageSettings`.
  case manual(duration: MediaTime?, gain: Int64?)
}
