// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

/// The destination of photos.
public enum PhotoDestination: Sendable {
  /// The bytes of each file, as ``Photo/data``.
  case memory
  /// A file with this path, for a single photo.
  case file(String, overwrites: Bool = false)
  /// A file per photo, whose path the closure returns.
  ///
  /// The closure is called on the thread that writes the files.
  case files(overwrites: Bool = false, path: @Sendable (Photo) -> String)
  /// A new file in the user's directory for images, such as `~/Pictures/IMG_20260131_140509.jpg`.
  ///
  /// The directory is `XDG_PICTURES_DIR` of xdg-user-dirs. It is created if it is missing.
  case userDirectory

  /// Whether existing files may be replaced.
  var overwrites: Bool {
    switch self {
    case .file(_, let overwrites), .files(let overwrites, _): overwrites
    case .memory, .userDirectory: false
    }
  }
}

/// The options of one capture of photos.
///
/// Each value is for one capture. Its copies share its ``uniqueID``, and the output accepts only one
/// of them.
public struct PhotoSettings: Sendable {
  private final class Token: Sendable {
    static let last = Atomic<Int64>(0)
    let id = Token.last.wrappingAdd(1, ordering: .relaxed).newValue
    let isUsed = Atomic<Bool>(false)
  }

  private let token = Token()

  /// The number of this capture, unique in this process.
  ///
  /// Each ``PhotoEvent`` has it.
  public var uniqueID: Int64 { token.id }
  /// The file format.
  public var format: PhotoFormat
  /// The JPEG quality from 1 to 100, or nil.
  ///
  /// With nil, a JPEG frame of the camera keeps its compressed data, and other frames are encoded
  /// with 90. With a quality, every frame is encoded. The scale is that of the Independent JPEG
  /// Group. Ignored for PNG.
  public var quality: Int?
  /// The number of photos.
  ///
  /// Without an ``interval``, a burst has the next frames of the camera, without a gap.
  public var photoCount = 1
  /// The time from one photo to the next, for a time lapse.
  ///
  /// The photos are scheduled at multiples of the interval after the first frame, so the error of one
  /// does not delay the others.
  public var interval: MediaTime?
  /// The exposures of a bracket, one photo each; empty for a single exposure.
  ///
  /// Each exposure is set, and its photo is taken when the camera has had time to follow. The
  /// exposure before the bracket is then restored.
  public var bracket: [BracketedExposure] = []
  /// Whether the camera's light is on for the photos.
  ///
  /// The torch is lit some frames before the photos, and goes out after them. A camera with a flash
  /// only fires it. With a light, photos are later than their request.
  public var flashMode = FlashMode.off
  /// Whether the camera takes the photo in its largest mode.
  ///
  /// Default: false, so that the photo is a frame of the running stream. If true and the camera has
  /// a larger mode, the session restarts it in that mode, takes the photo, and restores the mode and
  /// the rate. Other outputs get no frames meanwhile. A take ends as `reconfigured`, unless
  /// `SegmentSettings.reconnectTimeout` lets it wait; its next file then goes on, and its ledger
  /// names the gap.
  public var isHighResolutionPhotoEnabled = false
  /// Whether a JPEG file contains a thumbnail of at most 160 by 160 pixels.
  public var hasThumbnail = true
  /// The position to store, or nil.
  public var location: GeographicLocation?
  /// Exif values by name, which replace those that are known from the camera.
  public var properties: [String: String] = [:]
  /// XMP values of a JPEG or HEIC file by qualified name, such as `dc:title`.
  ///
  /// The namespaces are `dc`, `xmp`, `xmpRights` and `photoshop`. `dc:subject` has keywords,
  /// separated by commas. Ignored for other formats.
  public var xmp: [String: String] = [:]
  /// The options of a Live Photo, or nil for a still photo.
  ///
  /// A Live Photo has one frame, and requires `PhotoOutput.isLivePhotoCaptureEnabled`.
  public var livePhoto: LivePhotoSettings?
  /// The destination of the photos.
  public var destination: PhotoDestination

  /// Makes settings with a new ``uniqueID``.
  public init(format: PhotoFormat = .jpeg, destination: PhotoDestination = .memory) {
    self.format = format
    self.destination = destination
  }

  /// Makes settings like others, with a new ``uniqueID``.
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
  }

  /// The number of photos.
  var expectedPhotoCount: Int { bracket.isEmpty ? photoCount : bracket.count }

  /// The interval in nanoseconds, or 0 for consecutive frames.
  var intervalNanoseconds: Int64 {
    interval.map { max(1, (try? $0.nanoseconds(.halfAwayFromZero)) ?? .max) } ?? 0
  }

  /// Marks the settings as used.
  ///
  /// Returns false if they were used before.
  func use() -> Bool { !token.isUsed.exchange(true, ordering: .acquiringAndReleasing) }

  /// Checks the values that the camera does not influence.
  func check() throws(MediaError) {
    func refuse(_ what: String, _ recovery: Recovery) -> MediaError {
      MediaError(.badConfiguration, "photo \(uniqueID): \(what)", recovery: recovery)
    }
    if let quality, !(1...100).contains(quality) {
      throw refuse("the quality \(quality) is not from 1 to 100", "choose one from 1 to 100")
    }
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
  /// The number of the capture.
  public let uniqueID: Int64
  /// The file format.
  public let format: PhotoFormat
  /// The width in pixels of the stored images.
  ///
  /// A JPEG file stores the rotation of the connection as Exif's `Orientation`, which viewers apply.
  public let width: Int
  /// The height in pixels of the stored images.
  public let height: Int
  /// The number of photos, unless the capture ends early.
  public let expectedPhotoCount: Int
  /// Whether the compressed data of the camera's own JPEG frames is kept.
  public let keepsCompressedData: Bool
  /// The width in pixels of a Live Photo's movie, or nil for a still photo.
  public let livePhotoMovieWidth: Int?
  /// The height in pixels of a Live Photo's movie, or nil for a still photo.
  public let livePhotoMovieHeight: Int?
}
