// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

extension PhotoCommand {
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
    if let mode { return try device.format(matching: mode, where: photo.isAvailable) }
    let pixels = try device.formats().filter(photo.isAvailable).map { $0.width * $0.height }
    return try device.fastestFormat {
      photo.isAvailable(for: $0) && $0.width * $0.height == pixels.max()
    }
  }
}
