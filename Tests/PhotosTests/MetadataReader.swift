// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankPhotos

/// Phil Harvey's ExifTool, an independent validator of metadata.
enum ExifTool {
  static let isInstalled = Program.isInstalled("exiftool")
  static let whyNot: Comment = "the exiftool command is not installed"

  /// The tag values of a file.
  ///
  /// Numeric tags are numbers.
  static func values(of path: String) async throws -> [String: String] {
    let finished = try await run("exiftool", ["-n", "-a", "-s", "-EXIF:all", path])
    #expect(finished.status == 0, "\(finished.errors)")
    return MetadataReader.pairs(in: finished.output, separator: ":")
  }
}

/// Other programs that read the metadata of photos.
enum MetadataReader: String, CaseIterable {
  case exiv2, pillow, ffprobe, libRaw

  static let areInstalled =
    FFmpeg.isInstalled
    && ["exiv2", "raw-identify", "dcraw_emu"].allSatisfy(Program.isInstalled)
    && FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/PIL")
  static let whyNot: Comment = "exiv2, FFmpeg, LibRaw's programs or python3-pil is not installed"

  /// The metadata values of a photo as the program prints them, keyed by their Exif names.
  ///
  /// `Thumbnail` is the size of the thumbnail, and `title` is the title in XMP.
  func values(of path: String) async throws -> [String: String] {
    switch self {
    case .exiv2:
      // Each line looks like `Exif.Photo.ExposureTime  1/500`.
      let found = try await Self.output("exiv2", ["-q", "-PEXkv", path])
      var values = Self.pairs(in: found, separator: " ") { $0.split(separator: ".").last ?? $0 }
      values["title"] = values["title"]?.replacing("lang=\"x-default\" ", with: "")
      let previews = try await Self.output("exiv2", ["-q", "-pp", path])
      values["Thumbnail"] = previews.firstMatch(of: /([0-9]+x[0-9]+) pixels/).map { String($0.1) }
      return values
    case .pillow:
      var values = Self.pairs(
        in: try await Self.output("/usr/bin/python3", ["-c", Self.pillowScript, path]),
        separator: "=")
      values["SubSecTimeOriginal"] = values["SubsecTimeOriginal"]
      return values
    case .ffprobe:
      let found = try await Self.output(
        "ffprobe", ["-v", "error", "-show_entries", "frame_tags", path])
      return Self.pairs(in: found, separator: "=") { $0.split(separator: ":").last ?? $0 }
    case .libRaw:
      let found = Self.pairs(
        in: try await Self.output("raw-identify", ["-v", path]), separator: ":")
      var values: [String: String] = [:]
      for (name, ours) in [
        "Camera": "Make and Model", "ISO speed": "ISOSpeedRatings", "Shutter": "ExposureTime",
        "Focal length": "FocalLength", "Image size": "Size",
      ] { values[ours] = found[name] }
      values["Make and Model"]?.replace(" ID: 0x0", with: "")
      return values
    }
  }

  private static func output(_ program: String, _ arguments: [String]) async throws -> String {
    let finished = try await run(program, arguments)
    #expect(finished.status == 0, "\(program): \(finished.errors)")
    return finished.output
  }

  /// The names and values in lines of output.
  ///
  /// If a name occurs twice, the first value counts.
  static func pairs(
    in text: String, separator: Character, name: (Substring) -> Substring = { $0 }
  ) -> [String: String] {
    let pairs = text.split(separator: "\n").map { line in
      let parts = line.split(separator: separator, maxSplits: 1)
      return (
        name(parts[0]).trimmingCharacters(in: .whitespaces),
        parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
      )
    }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// Prints the metadata of the main image, the size of its thumbnail, and the title in XMP.
  private static let pillowScript = """
    import io, sys
    from xml.etree import ElementTree
    from PIL import ExifTags, Image, TiffImagePlugin
    image = Image.open(sys.argv[1])
    image.load()
    exif = image.getexif()
    def show(values, names):
        for tag, value in values.items():
            if isinstance(value, tuple):
                value = " ".join(str(float(part)) for part in value)
            elif isinstance(value, bytes):
                value = " ".join(str(byte) for byte in value)
            print(f"{names.get(tag, tag)}={value}")
    show(exif, ExifTags.TAGS)
    show(exif.get_ifd(0x8769), ExifTags.TAGS)
    show(exif.get_ifd(0x8825), ExifTags.GPSTAGS)
    if image.format == "JPEG":
        data = image.info["exif"][6:]
        stream = io.BytesIO(data)
        directory = TiffImagePlugin.ImageFileDirectory_v2(data[:8])
        for _ in range(2):
            stream.seek(directory.next)
            directory.load(stream)
        start, count = directory[0x0201], directory[0x0202]
        thumbnail = Image.open(io.BytesIO(data[start:start + count]))
        thumbnail.load()
        print("Thumbnail=%dx%d" % thumbnail.size)
        start = b"http://ns.adobe.com/xap/1.0/\\0"
        packet = next(data[len(start):] for _, data in image.applist if data.startswith(start))
        title = ElementTree.fromstring(packet).find(".//{http://purl.org/dc/elements/1.1/}title")
        print("title=" + "".join(title.itertext()).strip())
    """
}

/// Metadata values that other programs must read back as stored.
enum StoredValues {
  /// The numeric values.
  ///
  /// A location has degrees, minutes and seconds.
  private static let numbers: [String: [Double]] = [
    "ExposureTime": [0.002], "ISOSpeedRatings": [800], "FocalLength": [4.5], "WhiteBalance": [1],
    "GPSLatitude": [48, 51, 30.24], "GPSLongitude": [2, 17, 40.2], "GPSAltitude": [12.5],
    "GPSAltitudeRef": [1],
  ]

  /// Adds the metadata values to the settings of a photo.
  static func store(in settings: inout PhotoSettings) {
    settings.properties = [
      "Make": "Maker", "ExposureTime": "1/500", "ISOSpeedRatings": "800", "FocalLength": "4.5",
      "WhiteBalance": "1",
    ]
    settings.location = try? GeographicLocation(
      latitude: -48.858_4, longitude: 2.294_5, altitude: -12.5)
    settings.xmp = ["dc:title": "Goal & glory"]
  }

  /// Expects the stored values in the metadata of a photo.
  static func expect(
    _ found: [String: String], like photo: Photo, by reader: MetadataReader,
    _ others: [String: String] = [:]
  ) {
    var texts = others
    let model = photo.exif["Model"] ?? "none"
    if reader == .libRaw {
      texts["Make and Model"] = "Maker \(model)"
      texts["Size"] = "\(photo.width) x \(photo.height)"
    } else {
      (texts["Make"], texts["Model"]) = ("Maker", model)
      (texts["GPSLatitudeRef"], texts["GPSLongitudeRef"]) = ("S", "E")
      for name in ["DateTimeOriginal", "SubSecTimeOriginal"] {
        texts[name] = photo.exif[name] ?? "none"
      }
    }
    for (name, text) in texts { #expect(found[name] == text, "\(reader): \(name)") }
    let lensFields: Set = ["ExposureTime", "ISOSpeedRatings", "FocalLength"]
    for (name, wanted) in numbers where reader != .libRaw || lensFields.contains(name) {
      let read = found[name].map(Self.numbers) ?? []
      #expect(
        read.count == wanted.count && zip(read, wanted).allSatisfy { abs($0 - $1) < 1e-6 },
        "\(reader): \(name) is \(found[name] ?? "missing")")
    }
  }

  /// The numbers in a text such as `1/500.0 sec`, `48:1, 51:1, 302400:10000` or `4.5 mm`.
  private static func numbers(in text: String) -> [Double] {
    text.split { " ,".contains($0) }.compactMap { word in
      let parts = word.split { "/:".contains($0) }.map { Double($0) }
      guard let first = parts.first, let above = first else { return nil }
      guard parts.count == 2 else { return above }
      return parts[1].map { above / $0 }
    }
  }
}
