// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos

/// Photos in DNG with raw samples of Bayer sensors.
struct DNGTests {
  private static let (width, height) = (128, 96)

  /// The samples of a frame: a distinct value for each position and color.
  private static func frame(_ pattern: BayerPattern) -> [UInt8] {
    (0..<height).flatMap { y in
      (0..<width).flatMap { x -> [UInt8] in
        let color = pattern.colors[(y % 2) * 2 + x % 2]
        // Red increases to the right and green downward. Blue is constant.
        let level = UInt8(color == 0 ? x : color == 1 ? 2 * y : 100)
        return pattern.bitsPerSample == 8 ? [level] : [UInt8(x), level]
      }
    }
  }

  private func photo(_ format: String, _ settings: PhotoSettings) async throws -> Photo {
    let pixels = try #require(LibAVPixelFormat(named: format))
    let pattern = try #require(BayerPattern(PixelFormat(rawValue: format)))
    let requests = Requests()
    let image = Self.frame(pattern)
    func frame(_ number: Int) throws -> ScriptedDriver.Step {
      .frameWithBytes(
        .init(sequence: UInt32(number), microseconds: try PhotoCamera.time(number)), image)
    }
    let request = requests.step(settings, at: try PhotoCamera.time(3))
    let camera = try PhotoCamera(
      (0..<4).map(frame) + [request] + (4..<6).map(frame),
      delivery: .raw(pixels, bytesPerRow: 0), width: Self.width, height: Self.height)
    requests.join(camera.output)
    #expect(camera.output.availablePhotoFormats == [.jpeg, .png, .dng])
    try await camera.playToEnd()
    var photo: Photo?
    for await event in try #require(requests.captures.first).events {
      if case .didFinishProcessingPhoto(_, let result) = event { photo = try result.get() }
    }
    return try #require(photo)
  }

  @Test(
    .enabled(if: ExifTool.isInstalled, ExifTool.whyNot),
    arguments: [
      "bayer_rggb8", "bayer_bggr8", "bayer_gbrg8", "bayer_grbg16le", "bayer_rggb16le",
    ])
  func `A DNG photo stores the raw samples and their color pattern`(
    format: String
  ) async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.dng")
    let pattern = try #require(BayerPattern(PixelFormat(rawValue: format)))
    let photo = try await photo(format, PhotoSettings(format: .dng, destination: .file(path)))
    #expect(photo.width == Self.width && photo.height == Self.height)
    let file = try bytes(of: path)
    let image = Self.frame(pattern)
    let samples = pattern.bitsPerSample == 8 ? image : swapped(image)
    #expect(file.suffix(samples.count).elementsEqual(samples))
    let validation = try await run("exiftool", ["-validate", "-warning", "-a", "-s3", path])
    #expect(validation.output == "OK\n", "\(validation.output)\(validation.errors)")
    let found = try await ExifTool.values(of: path)
    #expect(found["SubSecTimeOriginal"] == photo.exif["SubSecTimeOriginal"])
    #expect(found["DNGVersion"] == "1 4 0 0")
    let colors = try await run("exiftool", ["-n", "-s3", "-SubIFD:CFAPattern2", path])
    #expect(colors.output == pattern.colors.map(String.init).joined(separator: " ") + "\n")
  }

  @Test(
    .enabled(if: MetadataReader.areInstalled, MetadataReader.whyNot),
    arguments: ["bayer_rggb8", "bayer_gbrg8", "bayer_grbg16le"])
  func `LibRaw develops a DNG photo with the correct colors`(format: String) async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.dng")
    _ = try await photo(format, PhotoSettings(format: .dng, destination: .file(path)))
    let developed = try await run("dcraw_emu", ["-w", "-W", "-T", path])
    #expect(developed.status == 0, "\(developed.output)\(developed.errors)")
    let image = try await FFmpeg.converted(
      path + ".tiff", ["-pix_fmt", "rgb24", "-f", "rawvideo"])
    try #require(image.count == 3 * Self.width * Self.height)
    func mean(_ color: Int, _ columns: Range<Int>, _ rows: Range<Int>) -> Int {
      let values = rows.flatMap { y in
        columns.map { Int(image[3 * (y * Self.width + $0) + color]) }
      }
      return values.reduce(0, +) / values.count
    }
    // Red increases to the right and green downward. Blue is constant.
    let (left, right) = (8..<40, 88..<120)
    let (top, bottom) = (8..<32, 64..<88)
    #expect(mean(0, right, top) > mean(0, left, top) + 30)
    #expect(mean(1, left, bottom) > mean(1, left, top) + 30)
    #expect(abs(mean(2, left, top) - mean(2, right, bottom)) < 30)
  }

  @Test(
    .enabled(if: MetadataReader.areInstalled, MetadataReader.whyNot),
    arguments: [MetadataReader.exiv2, .pillow, .libRaw])
  func `Other programs read the Exif values of a DNG photo`(reader: MetadataReader) async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.dng")
    var settings = PhotoSettings(format: .dng, destination: .file(path))
    StoredValues.store(in: &settings)
    let photo = try await photo("bayer_rggb8", settings)
    StoredValues.expect(try await reader.values(of: path), like: photo, by: reader)
  }

  private func swapped(_ bytes: [UInt8]) -> [UInt8] { bytes.indices.map { bytes[$0 ^ 1] } }
}
