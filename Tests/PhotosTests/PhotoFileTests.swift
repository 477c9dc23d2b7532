// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos

/// The files of photos, checked with ExifTool and libav's decoders.
struct PhotoFileTests {
  /// Takes one photo in a mode of the synthetic camera, into a file.
  private func photo(
    _ mode: String, as name: String, in scratch: Scratch, of size: String = "320x240",
    _ change: (inout PhotoSettings) -> Void = { _ in }
  ) async throws -> Photo {
    let camera = try CaptureDevice.named("synthetic:\(size)@30?pace=max&scene=pattern")
    let format = try camera.format(matching: ModeRequest(parsing: mode))
    let session = try CaptureSession(device: camera, format: format)
    let output = PhotoOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    var settings = PhotoSettings(format: try #require(PhotoFormat(path: name)))
    settings.destination = .file(scratch.file(name))
    change(&settings)
    let photos = try await output.photos(with: settings)
    await session.stopRunning()
    return try #require(photos.first)
  }

  @Test(
    .enabled(if: ExifTool.isInstalled, ExifTool.whyNot),
    arguments: ["/mjpg a.jpg", "/yuyv b.jpg", "/grey c.jpg", "/yuyv d.png"])
  func `ExifTool validates a photo file and reads the stored values`(mode: String) async throws {
    let scratch = try Scratch()
    let parts = mode.split(separator: " ").map(String.init)
    let location = try GeographicLocation(latitude: -48.858_4, longitude: 2.294_5, altitude: -12.5)
    let photo = try await photo(parts[0], as: parts[1], in: scratch) { settings in
      settings.location = location
      settings.properties = [
        "FocalLength": "4.25", "LensModel": "wide", "FNumber": "2.8", "ExposureBiasValue": "-1/3",
        "ExposureTime": "1/500", "ISOSpeedRatings": "800", "Flash": "0", "WhiteBalance": "1",
        "Make": "Maker", "Unknown": "x", "Orientation": "many",
      ]
    }
    #expect(photo.data == nil && photo.path == scratch.file(parts[1]))
    let path = scratch.file(parts[1])
    let validation = try await run("exiftool", ["-validate", "-warning", "-a", "-s3", path])
    #expect(validation.output == "OK\n", "\(validation.output)\(validation.errors)")
    let found = try await ExifTool.values(of: path)
    for (name, value) in [
      "Model": "Synthetic camera", "Make": "Maker", "Software": "Overcrank",
      "ExposureTime": "0.002", "FNumber": "2.8", "ISO": "800", "FocalLength": "4.25",
      "LensModel": "wide", "Flash": "0", "WhiteBalance": "1", "ExifImageWidth": "320",
      "ExifImageHeight": "240", "OffsetTimeOriginal": "+00:00", "GPSAltitude": "12.5",
      "GPSAltitudeRef": "1", "GPSLatitudeRef": "S", "GPSLongitudeRef": "E",
      "DateTimeOriginal": photo.exif["DateTimeOriginal"] ?? "",
      "SubSecTimeOriginal": photo.exif["SubSecTimeOriginal"] ?? "",
    ] where name != "Model" {
      #expect(found[name] == value, "\(name)")
    }
    #expect(found["Model"] == photo.exif["Model"])
    #expect(found["Orientation"] == nil && found["Unknown"] == nil)
    let latitude = try #require(found["GPSLatitude"].flatMap(Double.init))
    let longitude = try #require(found["GPSLongitude"].flatMap(Double.init))
    let bias = try #require(found["ExposureCompensation"].flatMap(Double.init))
    #expect(abs(abs(latitude) - 48.858_4) < 1e-7 && abs(longitude - 2.294_5) < 1e-7)
    #expect(abs(bias + 1.0 / 3) < 1e-6)
  }

  @Test(
    .enabled(if: MetadataReader.areInstalled, MetadataReader.whyNot),
    arguments: [
      (MetadataReader.exiv2, "a.jpg"), (.pillow, "a.jpg"), (.ffprobe, "a.jpg"), (.exiv2, "a.png"),
      (.pillow, "a.png"),
    ])
  func `Other programs read the metadata of JPEG and PNG photos`(
    reader: MetadataReader, name: String
  ) async throws {
    let scratch = try Scratch()
    let photo = try await photo("/yuyv", as: name, in: scratch, StoredValues.store)
    let found = try await reader.values(of: scratch.file(name))
    // FFmpeg ignores thumbnails and XMP. PNG files have neither.
    let isWhole = name.hasSuffix("jpg") && reader != .ffprobe
    StoredValues.expect(
      found, like: photo, by: reader,
      isWhole ? ["title": "Goal & glory", "Thumbnail": "160x120"] : [:])
  }

  @Test(.enabled(if: ExifTool.isInstalled, ExifTool.whyNot))
  func `Stores XMP values and refuses invalid XMP names`() async throws {
    let scratch = try Scratch()
    _ = try await photo("/mjpg", as: "a.jpg", in: scratch) { settings in
      settings.xmp = [
        "dc:title": "Goal & <glory>", "dc:subject": "ice hockey, goal", "xmp:Rating": "4",
        "dc:creator": "Ada",
      ]
    }
    let path = scratch.file("a.jpg")
    let validation = try await run("exiftool", ["-validate", "-warning", "-a", "-s3", path])
    #expect(validation.output == "OK\n", "\(validation.output)\(validation.errors)")
    let found = try await run(
      "exiftool", ["-s3", "-XMP:Title", "-XMP:Subject", "-XMP:Rating", "-XMP:Creator", path])
    #expect(found.output == "Goal & <glory>\nice hockey, goal\n4\nAda\n")
    for name in ["title", "dc:", "dc:a b", "other:title", "dc:title>"] {
      await #expect(throws: MediaError.self) {
        try await self.photo("/mjpg", as: "b.jpg", in: scratch) { $0.xmp = [name: "x"] }
      }
    }
  }

  @Test(.enabled(if: ExifTool.isInstalled, ExifTool.whyNot))
  func `A JPEG photo has a thumbnail unless it is disabled`() async throws {
    let scratch = try Scratch()
    for (mode, name) in [("/mjpg", "a.jpg"), ("/yuyv", "b.jpg")] {
      _ = try await photo(mode, as: name, in: scratch, of: "1280x720")
      let script = "exiftool -b -ThumbnailImage \"$1\" >\"$2\""
      let made = try await run(
        "bash", ["-c", script, "bash", scratch.file(name), scratch.file("thumbnail")])
      #expect(made.status == 0)
      let thumbnail = try bytes(of: scratch.file("thumbnail"))
      let file = try #require(thumbnail.withUnsafeBytes { JPEGFile(parsing: $0) })
      #expect(file.size.width == 160 && file.size.height == 90)
    }
    _ = try await photo("/mjpg", as: "c.jpg", in: scratch) { $0.hasThumbnail = false }
    #expect(try await ExifTool.values(of: scratch.file("c.jpg"))["ThumbnailLength"] == nil)
  }

  @Test func `A lower JPEG quality makes a smaller file`() async throws {
    let scratch = try Scratch()
    var sizes: [Int] = []
    for quality in [95, 60, 10] {
      let name = "\(quality).jpg"
      _ = try await photo("/mjpg", as: name, in: scratch) { $0.quality = quality }
      let file = try bytes(of: scratch.file(name))
      sizes.append(file.count)
    }
    #expect(sizes[0] > sizes[1] && sizes[1] > sizes[2])
    #expect([100, 95, 90, 75, 50, 1].map(PhotoWriter.quantizer) == [2, 2, 3, 8, 17, 31])
  }

  @Test func `Adds standard Huffman tables to a JPEG frame without tables`() throws {
    let frame = try MediaFrame.video(width: 64, height: 48, pixelFormat: .yuvj422p)
    for plane in 0..<3 {
      let count = frame.bytesPerRow(plane) * 48
      for offset in 0..<count { frame.planeData(plane)?[offset] = UInt8(offset * 7 % 251) }
    }
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: 64, height: 48, pixelFormat: .yuvj422p, timescale: 1)
    settings.options = ["huffman": "default"]
    var encoder = try Encoder(video: settings)
    try encoder.send(frame)
    try encoder.send(nil)
    let whole = try #require(try encoder.nextPacket()).withBytes { [UInt8]($0) }
    let bare = removingTables(of: whole) + [0, 0, 0]
    #expect(bare.count < whole.count)
    let file = try #require(bare.withUnsafeBytes { JPEGFile(parsing: $0) })
    let made = file.bytes(withExif: [])
    func luma(_ bytes: [UInt8]) throws -> [UInt8] {
      try bytes.withUnsafeBytes {
        try DecodedImage(decoding: $0, codec: "mjpeg", width: 64, height: 48).bytes
      }
    }
    #expect(try luma(made) == luma(whole))
    // The JFIF header and comments of the camera are not copied.
    #expect(!made.contains(sequence: Array("JFIF".utf8)))
    #expect(!made.contains(sequence: Array("Lavc".utf8)))
  }

  /// Removes the DHT segments, which contain the Huffman tables.
  private func removingTables(of file: [UInt8]) -> [UInt8] {
    var (result, position) = (Array(file.prefix(2)), 2)
    while position + 4 <= file.count {
      let length = 2 + Int(file[position + 2]) << 8 + Int(file[position + 3])
      let end = position + length
      if file[position + 1] != 0xC4 { result += file[position..<end] }
      let isScan = file[position + 1] == 0xDA
      position = end
      if isScan { break }
    }
    return result + file[position...]
  }

  @Test func `Refuses truncated and damaged JPEG data`() throws {
    let image = try PhotoCamera.images(3..<4)[0]
    for count in 0..<min(image.count, 700) {
      #expect(image.prefix(count).withUnsafeBytes { JPEGFile(parsing: $0) } == nil)
    }
    var random = SeededGenerator(seed: 3)
    for _ in 0..<2_000 {
      var damaged = image
      for _ in 0..<4 {
        damaged[Int.random(in: 2..<700, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      // Damaged data must not keep the parser busy forever.
      _ = damaged.withUnsafeBytes { JPEGFile(parsing: $0)?.size }
    }
  }

  @Test func `A sample buffer is written as a JPEG file with Exif values`() async throws {
    let sample = try await SampleBuffer.first(of: "synthetic:128x96@240?scene=pattern")
    sample.attachments.properties = ["Artist": "Ada"]
    for quality in [nil, 80] {
      let file = try sample.jpegData(quality: quality)
      #expect(try PhotoCamera.number(in: file) == Int(sample.attachments.sequence))
      #expect(file.contains(sequence: Array("Ada\0".utf8)))
    }
    #expect(throws: MediaError.self) { try sample.jpegData(quality: 0) }
  }

  @Test func `Photos are stored in the XDG image directory by default`() async throws {
    let scratch = try Scratch()
    func path(_ variables: [String: String]) throws -> String {
      try UserImageDirectory.path { variables[$0] }
    }
    let home = scratch.path
    #expect(try path(["HOME": home]) == "\(home)/Pictures")
    #expect(try path(["HOME": home, "XDG_PICTURES_DIR": "/images"]) == "/images")
    #expect(throws: MediaError.self) { try path([:]) }
    let text =
      "# XDG_PICTURES_DIR=\"/no\"\nXDG_VIDEOS_DIR=\"$HOME/V\"\nXDG_PICTURES_DIR=\"$HOME/My Images\"\n"
    _ = try scratch.write(Array(text.utf8), as: "user-dirs.dirs")
    #expect(try path(["HOME": "/home/a", "XDG_CONFIG_HOME": home]) == "/home/a/My Images")
    #expect(UserImageDirectory.path(in: "XDG_PICTURES_DIR=\"relative\"", home: "/") == nil)
  }
}

extension [UInt8] {
  fileprivate func contains(sequence: [UInt8]) -> Bool {
    indices.contains { self[$0...].starts(with: sequence) }
  }
}
