// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Testing

/// Metadata that a movie can store, and metadata that it cannot.
struct MetadataItemTests {
  @Test(arguments: [
    ("", "a"), ("with space", "a"), ("nul\0", "a"), ("com.example.a", "zero\0byte"),
    ("com.overcrank.recording", "a"), ("timecode", "00:00:00:00"), ("creation_time", "a"),
    (String(repeating: "k", count: 256), "a"),
    ("com.example.a", String(repeating: "x", count: 65_536)),
  ])
  func `Refuses a metadata key or value that a movie cannot store`(key: String, value: String) {
    let error = #expect(throws: MediaError.self) {
      try MetadataItem(.init(rawValue: key), .text(value))
    }
    #expect(error?.code == .invalidMetadata)
    #expect(error?.message.utf8.contains(0) == false)
  }

  @Test func `Refuses a metadata number that is not finite`() throws {
    for number in [Double.nan, .infinity, -.infinity] {
      #expect(throws: MediaError.self) { try MetadataItem(.init(rawValue: "a"), .number(number)) }
    }
    #expect(try MetadataItem(.init(rawValue: "a"), 1.5).value.description == "1.5")
    #expect(
      try MetadataItem(.init(named: "make"), "Acme").key.rawValue == "com.apple.quicktime.make")
  }

  @Test(arguments: [
    ("+46.9481+007.4474/", "+46.9481+007.4474/", 46.9481, 7.4474),
    ("+46.9481+7.4474", "+46.9481+007.4474/", 46.9481, 7.4474),
    ("+90+000/", "+90+000/", 90, 0), ("-90.0000-180.0000/", "-90.0000-180.0000/", -90, -180),
    ("+90.000+123.456/", "+90.000+123.456/", 90, 123.456),
    ("+00-025/", "+00-025/", 0, -25), ("-0.5-0.25/", "-00.5-000.25/", -0.5, -0.25),
    ("+4657+00726/", "+46.9500000+007.4333333/", 46.95, 7.4333333333),
    ("+465653.5-0072650.25/", "+46.9481944-007.4472917/", 46.9481944444, -7.4472916667),
    ("+46.9481+007.4474+542.5/", "+46.9481+007.4474+542.5/", 46.9481, 7.4474),
    ("+27.9881+086.9250-8/", "+27.9881+086.9250-8/", 27.9881, 86.925),
  ])
  func `Parses ISO 6709 locations and normalizes them`(
    text: String, stored: String, latitude: Double, longitude: Double
  ) throws {
    let location = try GeographicLocation(parsing: text)
    #expect(location.iso6709 == stored)
    #expect(abs(location.latitude - latitude) < 1e-6 && abs(location.longitude - longitude) < 1e-6)
    #expect(try MetadataItem(.location, .text(text)).value == .text(stored))
    #expect(try GeographicLocation(parsing: stored).iso6709 == stored)
  }

  @Test(arguments: [
    "", "/", "46.9481+007.4474/", "+90.0001+000/", "-91+000/", "+00+180.5/", "+00-181/",
    "+46.9481/",
    "+46.+007/", "+4660+00726/", "+465660+0072650/", "+46.9481+007.4474+/", "+46.9481+007.4474x/",
    "+46.9481+007.4474/+1/", "+46.9481 +007.4474/", "+٤٦+007/", "+nan+007/", "+46.9481+007.4474\0/",
    "+46+007+12345678901/", "+123+007/", "+46+12345/junk",
  ])
  func `Refuses a text that is not an ISO 6709 location`(text: String) {
    let error = #expect(throws: MediaError.self) { try GeographicLocation(parsing: text) }
    #expect(error?.code == .invalidMetadata)
  }

  @Test func `Writes degrees as an ISO 6709 location`() throws {
    #expect(
      try GeographicLocation(latitude: -46.94812, longitude: 7.5).iso6709
        == "-46.9481200+007.5000000/")
    #expect(
      try GeographicLocation(latitude: 90, longitude: -180, altitude: -0.0004).iso6709
        == "+90.0000000-180.0000000+0.000/")
    for (latitude, longitude) in [(90.1, 0), (0, -180.1), (.nan, 0), (0, .infinity)] {
      #expect(throws: MediaError.self) {
        try GeographicLocation(latitude: latitude, longitude: longitude)
      }
    }
  }
}
