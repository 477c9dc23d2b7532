// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankHEIF
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos
@testable import OvercrankSimulatedCameras

/// Photos in HEIC, checked with ExifTool and libheif's decoder.
struct HEICTests {
  /// Takes a photo of frame 5 into a file.
  private func photo(
    in path: String, angle: Int = 0, _ change: (inout PhotoSettings) -> Void = { _ in }
  ) async throws -> Photo {
    let requests = Requests()
    var settings = PhotoSettings(format: .heic, destination: .file(path))
    change(&settings)
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<6) + [requests.step(settings, at: try PhotoCamera.time(5))]
        + PhotoCamera.frames(6..<8), output: PhotoOutput(encoders: [HEICEncoder()]))
    requests.join(camera.output)
    try camera.session.connections.first?.setVideoRotationAngle(angle)
    try await camera.playToEnd()
    #expect(camera.output.availablePhotoFormats.contains(.heic) && requests.errors.isEmpty)
    for await event in try #require(requests.captures.first).events {
      if case .didFinishProcessingPhoto(_, let result) = event { return try result.get() }
    }
    throw MediaError(.cancelled, "there is no photo")
  }

  @Test(.enabled(if: ExifTool.isInstalled, ExifTool.whyNot))
  func `ExifTool validates a HEIC photo and reads the stored values`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.heic")
    let location = try GeographicLocation(latitude: -48.858_4, longitude: 2.294_5, altitude: nil)
    let photo = try await photo(in: path) { settings in
      settings.location = location
      settings.properties = ["LensModel": "wide", "ExposureTime": "1/500"]
      settings.xmp = ["dc:title": "Goal"]
    }
    #expect(photo.path == path && photo.width == PhotoCamera.width && photo.sequence == 5)
    let validation = try await run("exiftool", ["-validate", "-warning", "-a", "-s3", path])
    #expect(validation.output == "OK\n", "\(validation.output)\(validation.errors)")
    let found = try await ExifTool.values(of: path)
    for (name, value) in [
      "LensModel": "wide", "ExposureTime": "0.002", "GPSLatitudeRef": "S",
      "DateTimeOriginal": photo.exif["DateTimeOriginal"] ?? "",
    ] { #expect(found[name] == value, "\(name)") }
    let kind = try await run("exiftool", ["-s3", "-FileType", "-Title", path])
    #expect(kind.output == "HEIC\nGoal\n")
  }

  @Test(.enabled(if: MetadataReader.areInstalled, MetadataReader.whyNot))
  func `Exiv2 reads the metadata of a HEIC photo`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.heic")
    let photo = try await photo(in: path, StoredValues.store)
    StoredValues.expect(
      try await MetadataReader.exiv2.values(of: path), like: photo, by: .exiv2,
      ["title": "Goal & glory"])
  }

  @Test(arguments: [0, 90, 180, 270])
  func `A HEIC photo shows the requested frame upright`(angle: Int) async throws {
    let scratch = try Scratch()
    let (path, png) = (scratch.file("a.heic"), scratch.file("a.png"))
    let photo = try await photo(in: path, angle: angle)
    let isTransposed = angle % 180 != 0
    #expect(photo.width == (isTransposed ? PhotoCamera.height : PhotoCamera.width))
    let converted = try await run("heif-convert", [path, png])
    try #require(converted.status == 0, "\(converted.output)\(converted.errors)")
    let (width, height) = (photo.width, photo.height)
    let pixels = try bytes(of: png).withUnsafeBytes { bytes in
      try DecodedImage(
        decoding: bytes, codec: "png", width: width, height: height, bytesPerPixel: 3
      ).bytes
    }
    // The rotation is undone to read the painted frame number.
    let number = FrameNumberPattern.read(width: PhotoCamera.width, height: PhotoCamera.height) {
      x, y in
      let (right, bottom) = (PhotoCamera.width - 1 - x, PhotoCamera.height - 1 - y)
      let (column, row) =
        switch angle {
        case 90: (bottom, x)
        case 180: (right, bottom)
        case 270: (y, right)
        default: (x, y)
        }
      return pixels[(row * width + column) * 3]
    }
    #expect(number == 5)
  }

  @Test func `Other programs open a HEIC Live Photo with its movie`() async throws {
    let (requests, scratch) = (Requests(), try Scratch())
    let path = scratch.file("a.heic")
    var settings = PhotoSettings(format: .heic, destination: .file(path))
    settings.livePhoto = LivePhotoSettings()
    let output = PhotoOutput(encoders: [HEICEncoder()])
    let camera = try LivePhotoTests.camera(
      requests, frames: 0..<60,
      after: [30: requests.step(settings, at: try PhotoCamera.time(30))], output)
    try await camera.playToEnd()
    let (_, made, story) = try await outcome(of: #require(requests.captures.first))
    #expect(
      story == ["will begin", "will capture", "did capture", "photo 30", "movie", "did finish"])
    let movie = try #require(made)
    // Only JPEG files can contain the movie of a Live Photo.
    #expect(!movie.isEmbedded)
    let pair = try #require(LivePhoto(path: path))
    #expect(pair.movie == .file(movie.path) && pair.photoPath == path)
    #expect(pair.contentIdentifier == movie.contentIdentifier)
    #expect(LivePhoto(path: movie.path) == pair)
    // A damaged file is not recognized as a Live Photo.
    let file = try bytes(of: path)
    var random = SeededGenerator(seed: 1)
    for _ in 0..<300 {
      var damaged = file
      for _ in 0..<3 {
        damaged[Int(random.next() % 600)] = UInt8(truncatingIfNeeded: random.next())
      }
      if random.next() % 4 == 0 { damaged.removeLast(Int(random.next() % UInt64(file.count))) }
      #expect(LivePhoto(path: try scratch.write(damaged, as: "b.heic")) == nil)
    }
  }

  @Test func `Refuses HEIC photos without a HEIC encoder`() async throws {
    let requests = Requests()
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<2) + [requests.step(PhotoSettings(format: .heic))]
        + PhotoCamera.frames(2..<4))
    requests.join(camera.output)
    try await camera.playToEnd()
    #expect(requests.errors.map(\.code) == [.badConfiguration])
    #expect(!camera.output.availablePhotoFormats.contains(.heic))
  }
}
