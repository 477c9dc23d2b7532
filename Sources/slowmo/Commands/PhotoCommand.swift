// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// `slowmo photo DEVICE -o FILE`: takes photos from a running camera.
struct PhotoCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "photo",
    abstract: "Take photos, bursts and time lapses with a camera.",
    discussion: """
      EXAMPLES
        slowmo photo synthetic:640x480@240 -o photo.jpg
        slowmo photo synthetic --mode 640x480@120/yuyv -o small.jpg --quality 80
        slowmo photo synthetic:640x480@240 -o 'burst_{n:03}.jpg' --burst 24
        slowmo photo synthetic:640x480@240 -o 'lapse_{n:04}.png' --every 250ms --count 4 --json
        slowmo photo 'synthetic:320x240@240?pace=max' -o 'second_{n}.jpg' --every 1s -t 5s

      The extension selects JPEG (.jpg) or PNG (.png). Without -o, the files go to the user's
      directory for images (xdg-user-dirs). Without --quality, the JPEG frames of a camera keep
      their compressed data. Exif has what the camera reports: time, exposure, ISO, white balance.
      For several photos, FILE contains {n}, which counts from 1, or {index} (the frame's index
      since the start), {sequence} (the driver's counter), or {us} (microseconds since the first
      photo). --burst takes consecutive frames at the full rate. --every counts from the first
      photo, without drift; the first Ctrl-C ends it. The name - is standard output.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: .file())
  var device: String

  @Option(
    name: .shortAndLong, help: "The file or its template: .jpg or .png.", completion: .file())
  var output: String?

  @Option(
    help: "The mode, as [WxH][@rate][/fourcc]. Default: the largest, then the fastest.",
    transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(help: "Take this many consecutive frames.")
  var burst: Int?

  @Option(help: "Take a photo at this interval.", transform: positiveDuration)
  var every: MediaTime?

  @Option(help: "With --every, end after this many photos.")
  var count: Int?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional,
    help: "With --every, end after this duration.", transform: positiveDuration)
  var duration: MediaTime?

  @Option(help: "The JPEG quality, from 1 to 100; encodes a camera's JPEG frames again.")
  var quality: Int?

  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if burst != nil, every != nil {
      throw ValidationError("--burst and --every exclude each other")
    }
    if let burst, burst < 1 { throw ValidationError("--burst \(burst) is not above zero") }
    if let count, count < 1 { throw ValidationError("--count \(count) is not above zero") }
    if every == nil {
      if count != nil { throw ValidationError("--count needs --every: use --burst for a burst") }
      if duration != nil { throw ValidationError("-t needs --every") }
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
      throw ValidationError("cannot write \(output): use a .jpg or .png file name")
    }
    do { _ = try template() } catch let error as CommandError {
      throw ValidationError(error.line)
    }
  }

  /// Whether more than one photo may be taken.
  private var isSeries: Bool { every != nil || burst ?? 1 > 1 }

  private static let fields = ["n", "index", "sequence", "us"]

  /// Parses the name template.
  ///
  /// Returns nil without a name.
  private func template() throws -> NameTemplate? {
    guard let output else { return nil }
    let template = try NameTemplate(output, fields: Self.fields)
    if isSeries, !Self.fields.contains(where: template.holds) {
      throw CommandError.usage(
        "all photos would have the name \(output)",
        hint: "add the photo's number: photo_{n:03}.jpg")
    }
    return template
  }

  func perform() throws -> ExitStatus {
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
    // If nothing was taken, there is only an error to report.
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
    let session = CaptureSession(input)
    let photos = PhotoOutput()
    try session.addOutput(photos)
    let settings = try settings()
    let progress = ProgressReporter(writing.progress)
    progress.start(file: output ?? "")
    try session.startRunning()
    defer { session.stopRunning() }
    Interrupt.onFirst { photos.stopAll() }
    var files: [PhotoDocument.File] = []
    var standardOutputData: [UInt8]?
    var problem: CommandError?
    do {
      _ = try photos.photos(with: settings) { photo in
        standardOutputData = photo.data
        let path = photo.path ?? standardOutput
        files.append(PhotoDocument.File(photo, path: path))
        progress.file(path)
      }
    } catch { problem = CommandError(error) }
    document.files = files
    // The document lists the photos, and their bytes are the output.
    if let standardOutputData { try Output.data(standardOutputData) }
    progress.end(file: nil)
    return problem
  }

  private func settings() throws -> PhotoSettings {
    var settings = PhotoSettings(format: output.flatMap(PhotoFormat.init(path:)) ?? .jpeg)
    settings.quality = quality
    settings.interval = every
    settings.photoCount = try burst ?? (every == nil ? 1 : seriesCount())
    if let template = try template(), output != standardOutput {
      let first = FirstTime()
      settings.destination = .files(overwrites: writing.overwrite) { photo in
        let time = photo.presentationTimeStamp.wholeNanoseconds
        return template.name([
          "n": .number(Int64(photo.index + 1)), "index": .number(photo.frameIndex),
          "sequence": .number(Int64(photo.sequence)),
          "us": .number((time - first.of(time)) / 1_000),
        ])
      }
    } else if output == nil {
      settings.destination = .userDirectory
    }
    return settings
  }

  /// The number of photos of a time lapse; the first is at its start.
  private func seriesCount() throws -> Int {
    guard let every, let duration else { return count ?? .max }
    let times = try (duration.seconds / every.seconds).rounded(.towardPositiveInfinity)
    return min(count ?? .max, max(1, Int(exactly: times) ?? .max))
  }

  /// Refuses a name that is taken, before the camera is opened.
  private func refuseExistingFiles() throws {
    guard let output, let template = try template() else { return }
    guard isSeries else {
      if Self.fields.contains(where: template.holds) { return }
      return try Files.refuseExisting(output, overwrites: writing.overwrite)
    }
    // Other fields depend on the frames.
    guard !["index", "sequence", "us"].contains(where: template.holds) else { return }
    let count = try burst ?? seriesCount()
    for number in 1...max(1, min(count, 10_000)) {
      try Files.refuseExisting(
        template.name(["n": .number(Int64(number))]), overwrites: writing.overwrite)
    }
  }

  /// Returns the mode that `--mode` requests or, without it, the largest mode.
  private func chooseFormat(of device: CaptureDevice) throws -> CaptureFormat {
    if let mode { return try device.format(matching: mode, where: PhotoFormat.isAvailable) }
    let pixels = try device.formats().filter(PhotoFormat.isAvailable).map { $0.width * $0.height }
    return try device.fastestFormat {
      PhotoFormat.isAvailable(for: $0) && $0.width * $0.height == pixels.max()
    }
  }
}
