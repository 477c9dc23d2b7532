// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// `slowmo photo DEVICE -o FILE`: takes photos from a running camera.
struct PhotoCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "photo",
    abstract: "Take photos, Live Photos, bursts and time lapses with a camera.",
    discussion: """
      EXAMPLES
        slowmo photo synthetic:640x480@240 -o photo.jpg
        slowmo photo synthetic:640x480@240 -o 'burst_{n:03}.jpg' --burst 24
        slowmo photo synthetic -o 'lapse_{n:04}.png' --every 250ms --count 4
        slowmo photo synthetic -o hit.jpg --trigger audio:-9dBFS
        slowmo photo synthetic:640x480@120 -o live.jpg --live

      The extension of FILE selects JPEG (.jpg), PNG (.png), HEIC (.heic, needs slowmo-full) or, for
      Bayer sensors, DNG (.dng). The name - is standard output. Without -o, the files go to the
      user's directory for images.

      For several photos, FILE is a template with {n}, which counts from 1, {index} (the index of
      the frame), {sequence} (the counter of the driver) or {us} (microseconds since the first
      photo).

      MANUAL
        slowmo photo synthetic --mode 640x480@120/yuyv -o small.jpg --quality 80
        slowmo photo 'synthetic:320x240@240?pace=max' -o 'second_{n}.jpg' --every 1s -t 5s
        slowmo photo synthetic -o '{n}.jpg' --trigger audio:-9dBFS --quiet-period 0.5 --repeat --count 2
        slowmo photo synthetic:640x480@120 -o photo.heic --quality 70

      Without --quality, a JPEG frame of a camera keeps its compressed data. Exif has what the
      camera reports: time, exposure, ISO and white balance. The directory for images is that of
      xdg-user-dirs.

      --burst takes consecutive frames at the full rate. --every counts from the first photo,
      without drift, and the first Ctrl-C ends it. --bracket -2,0,2 takes a photo with each exposure
      compensation, and then restores the one before.

      --live also records the 1.5 s before and after the photo. The movie is written next to the
      photo (Live Photo), and also at the end of a JPEG file (Motion Photo). It has the camera's own
      audio: that of the microphone of the same USB device, of the synthetic camera or of the played
      file.

      --trigger waits for a trigger, as slowmo record does, and with --repeat for several. Each
      trigger takes one photo, or those of --burst or --bracket. In the example, the triggers are
      the clicks of the synthetic camera, one per second.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: .file())
  var device: String

  @Option(
    name: .shortAndLong, help: "The file or its template: .jpg, .png, .heic or .dng.",
    completion: .file())
  var output: String?

  @Option(
    help: "The mode, as [WxH][@rate][/fourcc]. Default: the largest, then the fastest.",
    transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(help: "Take this many consecutive frames.")
  var burst: Int?

  @Option(help: "Take a photo at this interval.", transform: positiveDuration)
  var every: MediaTime?

  @Option(
    parsing: .unconditional,
    help: "Take a photo with each exposure compensation in EV, such as -2,0,2.",
    transform: ExposureBracket.init(parsing:))
  var bracket: ExposureBracket?

  @Option(
    help: ArgumentHelp(
      "Take photos at a signal (SIGUSR1), key (Enter), udp:[ADDRESS:]PORT, audio:-12dBFS or motion.",
      valueName: "signal|key|udp:PORT|audio:-12dBFS|motion"))
  var trigger: [TriggerKind] = []

  @Option(
    parsing: .unconditional,
    help: "Audio and motion triggers need this much quiet before them. Default: 1s.",
    transform: durationOrZero)
  var quietPeriod: MediaTime?

  @Flag(help: "Wait for the next trigger after each; FILE is a template: goal_{n:03}.jpg.")
  var `repeat` = false

  @Option(help: "Light the camera's torch or flash: off, on, or auto if frames are dark.")
  var flash = FlashMode.off

  @Option(help: "With --every or --repeat, end after this many photos or triggers.")
  var count: Int?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional,
    help: "With --every, end after this duration.", transform: positiveDuration)
  var duration: MediaTime?

  @Flag(
    help: """
      Take a Live Photo: a photo with a movie of 3 s around it. The movie has the camera's own audio.
      """)
  var live = false

  @Option(help: "The JPEG quality, from 1 to 100; encodes a camera's JPEG frames again.")
  var quality: Int?

  @Option(
    help: ArgumentHelp(
      "Store a tag by its Exif name, or by its XMP name such as dc:title.", valueName: "key=value"),
    transform: PhotoTag.init(parsing:))
  var tag: [PhotoTag] = []

  @Option(
    parsing: .unconditional,
    help: "Store the place of the photo, e.g. +46.9481+007.4474/ (ISO 6709).",
    transform: { try GeographicLocation(parsing: $0) })
  var location: GeographicLocation?

  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if burst != nil, every != nil {
      throw ValidationError("--burst and --every exclude each other")
    }
    if let burst, burst < 1 { throw ValidationError("--burst \(burst) is not above zero") }
    if let count, count < 1 { throw ValidationError("--count \(count) is not above zero") }
    if bracket != nil, burst != nil || every != nil || live {
      throw ValidationError("--bracket excludes --burst, --every and --live")
    }
    if !trigger.isEmpty, every != nil {
      throw ValidationError("--trigger and --every exclude each other")
    }
    if self.repeat, trigger.isEmpty {
      throw ValidationError(
        "--repeat needs a --trigger: signal, key, udp:PORT, audio:-12dBFS or motion")
    }
    if quietPeriod != nil, trigger.isEmpty {
      throw ValidationError("--quiet-period needs a --trigger: audio:-12dBFS or motion")
    }
    if count != nil, every == nil, !self.repeat {
      throw ValidationError("--count needs --every or --repeat: use --burst for a burst")
    }
    if duration != nil, every == nil { throw ValidationError("-t needs --every") }
    if live, burst != nil || every != nil {
      throw ValidationError("--live excludes --burst and --every")
    }
    if live, output == standardOutput {
      throw ValidationError("a Live Photo cannot be written to standard output: name a file")
    }
    if let quality, !(1...100).contains(quality) {
      throw ValidationError("--quality \(quality) is not from 1 to 100")
    }
    try common.check(standardOutputFor: "-o", output)
    guard let output, output != standardOutput else {
      if output == standardOutput, isSeries {
        throw ValidationError("several photos cannot be written to standard output: name files")
      }
      return
    }
    guard PhotoFormat(path: output) != nil else {
      throw ValidationError("cannot write \(output): use a .jpg, .png, .heic or .dng file name")
    }
    do { _ = try template() } catch let error as CommandError {
      throw ValidationError(error.line)
    }
  }

  /// Whether the camera's audio is needed, for the movie of a Live Photo or for a trigger.
  private var usesAudio: Bool {
    live
      || trigger.contains {
        if case .audio = $0 { true } else { false }
      }
  }

  /// The number of photos that one trigger takes.
  var photosPerTrigger: Int { burst ?? bracket?.exposures.count ?? 1 }

  /// Whether more than one photo may be taken.
  var isSeries: Bool {
    every != nil || photosPerTrigger > 1 || self.repeat
  }

  static let fields = ["n", "index", "sequence", "us"]

  /// Parses the name template.
  ///
  /// Returns nil without a name.
  func template() throws -> NameTemplate? {
    guard let output else { return nil }
    let template = try NameTemplate(output, fields: Self.fields)
    if isSeries, !Self.fields.contains(where: template.holds) {
      throw CommandError.usage(
        "all photos would have the name \(output)",
        hint: "add the photo's number: photo_{n:03}.jpg")
    }
    return template
  }

  var endsAtOnce: Bool { false }

  func perform() throws -> ExitStatus {
    let encoders = OptionalComponents.current.photoEncoders
    if let photoFormat, photoFormat == .heic, !encoders.contains(where: { $0.format == .heic }) {
      try FullProgram.replaceThisProgram(for: "HEIC", alternative: "name a .jpg file")
    }
    let device = try CaptureDevice.named(self.device)
    let clip = device.kind == .file ? device.path : nil
    try OutputNames.check([output], inputs: [clip])
    let format = try chooseFormat(of: device)
    try refuseExistingFiles()
    var document = PhotoDocument(
      device: device.address, mode: format.id, dryRun: writing.dryRun)
    if writing.dryRun {
      if common.json {
        try Output.document(document)
      } else {
        let target = output ?? "the user's directory for images"
        Output.line("would take a photo with \(device.address) in mode \(format.id) to \(target)")
      }
      return .done
    }
    let problem = try take(from: DeviceInput(device: device, format: format), into: &document)
    document.problem = problem
    // If no photo was taken, only the error is reported.
    if let problem, document.files.isEmpty { throw problem }
    if common.json {
      try Output.document(document)
      if let problem { ProgressEvents.fail(problem) }
    } else {
      if output != standardOutput { for file in document.files { Output.line(file.file) } }
      if let problem { Output.error(problem) }
    }
    return problem?.status ?? .done
  }

  /// Takes the photos and adds them to the document.
  ///
  /// Returns the error that ended the capture, if any.
  private func take(
    from input: DeviceInput, into document: inout PhotoDocument
  ) throws -> CommandError? {
    let progress = ProgressReporter(writing.progress)
    let audio = try AudioSourceOption(named: usesAudio ? nil : "none")
    let session = try audio.session(of: input) { progress.warning($0) }
    let photos = PhotoOutput(encoders: OptionalComponents.current.photoEncoders)
    try session.addOutput(photos)
    if live { try photos.setLivePhotoCaptureEnabled(true) }
    let settings = try settings()
    progress.start(file: output ?? "")
    try session.startRunning()
    defer { session.stopRunning() }
    for warning in audio.warnings(of: input.device, in: session) { progress.warning(warning) }
    Interrupt.onFirst { photos.stopAll() }
    var files: [PhotoDocument.File] = []
    var standardOutputData: [UInt8]?
    var problem: CommandError?
    func note(_ photo: Photo) {
      standardOutputData = photo.data
      let path = photo.path ?? standardOutput
      files.append(PhotoDocument.File(photo, path: path))
      progress.file(path)
    }
    do {
      if trigger.isEmpty {
        _ = try photos.photos(with: settings, progress: note)
      } else {
        let triggered = TriggeredPhotos(
          photos, settings, maximumCount: self.repeat ? count ?? .max : 1,
          quietPeriod: quietPeriod ?? MediaTime(seconds: 1))
        problem = try triggered.take(trigger, in: session, progress, note)
      }
    } catch let error as MediaError { problem = CommandError(error) }
    document.files = files
    // With `-o -`, the photo is not in a file, and its bytes are written to standard output here.
    if let standardOutputData { try Output.data(standardOutputData) }
    progress.end(file: nil)
    return problem
  }

  /// Returns the library's photo settings for these options.
  func settings() throws -> PhotoSettings {
    var settings = PhotoSettings(format: photoFormat ?? .jpeg)
    settings.quality = quality
    settings.interval = every
    settings.bracket = bracket?.exposures ?? []
    settings.flashMode = flash
    settings.location = location
    for tag in tag {
      if tag.isXMP {
        settings.xmp[tag.name] = tag.value
      } else {
        settings.properties[tag.name] = tag.value
      }
    }
    if live {
      settings.livePhoto = LivePhotoSettings()
      settings.livePhoto?.waitsForPreRoll = true
    }
    settings.photoCount = try burst ?? (every == nil ? 1 : seriesCount())
    if let template = try template(), output != standardOutput {
      let (first, number) = (FirstTime(), PhotoCounter())
      settings.destination = .files(overwrites: writing.overwrite) { photo in
        let time = photo.presentationTimeStamp.wholeNanoseconds
        return template.name([
          "n": .number(number.next()), "index": .number(photo.frameIndex),
          "sequence": .number(Int64(photo.sequence)),
          "us": .number((time - first.of(time)) / 1_000),
        ])
      }
    } else if output == nil {
      settings.destination = .userDirectory
    }
    return settings
  }

  /// The format that the extension of the file name selects; nil for standard output, and without a
  /// name.
  var photoFormat: PhotoFormat? { output.flatMap(PhotoFormat.init(path:)) }

  /// The number of photos in a time lapse; the first photo is taken at the start.
  private func seriesCount() throws -> Int {
    guard let every, let duration else { return count ?? .max }
    let times = try (duration.seconds / every.seconds).rounded(.towardPositiveInfinity)
    return min(count ?? .max, max(1, Int(exactly: times) ?? .max))
  }

  /// Refuses a file name that exists, before the camera is opened.
  func refuseExistingFiles() throws {
    guard let output, let template = try template() else { return }
    guard isSeries else {
      if Self.fields.contains(where: template.holds) { return }
      if live {
        try Files.refuseExisting(
          "\(output.withoutExtension).mov", overwrites: writing.overwrite)
      }
      return try Files.refuseExisting(output, overwrites: writing.overwrite)
    }
    // The values of the fields `index`, `sequence` and `us` are known only when frames arrive, so
    // names that contain such a field cannot be checked yet.
    guard !["index", "sequence", "us"].contains(where: template.holds) else { return }
    if self.repeat, count == nil { return }
    let triggers = self.repeat ? min(count ?? 1, 10_000) : 1
    let count = try every == nil ? min(photosPerTrigger, 10_000) * triggers : seriesCount()
    for number in 1...max(1, min(count, 10_000)) {
      try Files.refuseExisting(
        template.name(["n": .number(Int64(number))]), overwrites: writing.overwrite)
    }
  }

  /// Returns the mode that `--mode` requests or, without it, the largest mode.
  func chooseFormat(of device: CaptureDevice) throws -> CaptureFormat {
    let photo = photoFormat ?? .jpeg
    if mode != nil { return try device.usableFormat(matching: mode, where: photo.isAvailable) }
    // Frames that depend on others are decoded at a cost, and with less quality.
    let formats = try device.formats().filter(photo.isAvailable)
    let alone = formats.filter(\.isShownAlone)
    let pixels = (alone.isEmpty ? formats : alone).map { $0.width * $0.height }
    return try device.fastestFormat {
      photo.isAvailable(for: $0) && (alone.isEmpty || $0.isShownAlone)
        && $0.width * $0.height == pixels.max()
    }
  }
}

/// The JSON document of `photo`.
struct PhotoDocument: Encodable {
  /// A photo that was written.
  struct File: Encodable {
    let file: String
    let id: Int64
    let frameIndex: Int64
    let sequence: UInt32
    /// The time at which the photo was taken, on the capture clock.
    let at: MediaTime
    let shutterLag: MediaTime
    /// The file name of the Live Photo's movie; nil for other photos.
    let movie: String?

    init(_ photo: Photo, path: String) {
      file = path
      id = photo.uniqueID
      frameIndex = photo.frameIndex
      sequence = photo.sequence
      at = photo.presentationTimeStamp
      shutterLag = photo.shutterLag
      movie = photo.livePhotoMovie?.path
    }
  }

  private enum CodingKeys: CodingKey { case schema, device, mode, dryRun, files, error }

  let device: String
  let mode: String
  let dryRun: Bool
  var files: [File] = []
  var problem: CommandError?

  init(device: String, mode: String, dryRun: Bool) {
    (self.device, self.mode, self.dryRun) = (device, mode, dryRun)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("photo"), forKey: .schema)
    try container.encode(device, forKey: .device)
    try container.encode(mode, forKey: .mode)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encode(files, forKey: .files)
    try container.encodeIfPresent(problem.map(ErrorDetails.init), forKey: .error)
  }
}

/// Counts photos for their file names, from 1.
final class PhotoCounter: Sendable {
  private let count = Atomic<Int64>(0)

  func next() -> Int64 { count.wrappingAdd(1, ordering: .relaxed).newValue }
}

/// Remembers a first time, from which the times in file names are counted.
final class FirstTime: Sendable {
  private let first = Mutex<Int64?>(nil)

  /// Stores the time of the first call; returns this first time in all calls.
  func of(_ time: Int64) -> Int64 {
    first.withLock { first in
      first = first ?? time
      return first ?? time
    }
  }
}

/// The exposure compensations of `--bracket`: `-2,0,2`.
struct ExposureBracket {
  let exposures: [BracketedExposure]

  /// The greatest exposure compensation in EV.
  private static let limit = 20.0

  init(parsing text: String) throws {
    exposures = try text.split(separator: ",", omittingEmptySubsequences: false).map { part in
      guard let bias = Double(part), bias.isFinite, abs(bias) <= Self.limit else {
        throw ValidationError("\(text) is not a list of EV, such as -2,0,2")
      }
      return .automatic(bias: Int64((bias * 1_000).rounded()))
    }
  }
}

extension FlashMode: ExpressibleByArgument {}

/// A tag of `photo --tag`: `Artist=Ada` for Exif, `dc:title=Goal` for XMP.
struct PhotoTag {
  let name: String
  let value: String

  init(parsing text: String) throws {
    guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
      throw ValidationError("\(text.repaired) is not a tag such as Artist=Ada or dc:title=Goal")
    }
    name = String(text[..<sign]).repaired
    value = String(text[text.index(after: sign)...]).repaired
  }

  var isXMP: Bool { name.contains(":") }
}
