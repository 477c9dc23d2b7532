// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Slow-motion metadata of phones.
struct SlowMotionMarkersTests {
  /// The region and the speed of the iPhone file shown at rae.tnir.org/archives/tag/aae.
  ///
  /// Python's plistlib made the binary list inside.
  private static let plain = """
    YnBsaXN0MDDRAQJac2xvd01vdGlvbtIDBAUGVHJhdGVXcmVnaW9ucyM/wAAAAAAAAKEH0QgJWXRp\
    bWVSYW5nZdIKCwwVVXN0YXJ0WGR1cmF0aW9u1A0ODxAREhMUVXZhbHVlWXRpbWVzY2FsZVVlcG9j\
    aFVmbGFncxEBDBECWBAAEAHUDQ4PEBYSExQRAuEICxYbICgxMzZARUtUXWNtc3l8f4GDjAAAAAAA\
    AAEBAAAAAAAAABcAAAAAAAAAAAAAAAAAAACP
    """

  /// The iPhone file with additional keys, and with numbers of other types.
  private static let crowded = """
    YnBsaXN0MDDTAQIDBBksWnNsb3dNb3Rpb25jAOUA5AD2XxAoeHh4eHh4eHh4eHh4eHh4eHh4eHh4\
    eHh4eHh4eHh4eHh4eHh4eHh4eNIFBgcIVHJhdGVXcmVnaW9ucyM/wAAAAAAAAKEJ0QoLWXRpbWVS\
    YW5nZdIMDQ4XVXN0YXJ0WGR1cmF0aW9u1A8QERITFBUWVXZhbHVlWXRpbWVzY2FsZVVlcG9jaFVm\
    bGFncxEBDBECWBAAEAHUDxAREhgUFRYRAuGvEBQVFhobHB0eHyAhIiMkJSYnKCkqKxACEAMQBBAF\
    EAYQBxAIEAkQChALEAwQDRAOEA8QEBAREBIQE6UtLi8wMQkIIz/4AAAAAAAAE//////////9EwAA\
    AQAAAAAAAAgADwAaACEATABRAFYAXgBnAGkAbAB2AHsAgQCKAJMAmQCjAKkArwCyALUAtwC5AMIA\
    xQDcAN4A4ADiAOQA5gDoAOoA7ADuAPAA8gD0APYA+AD6APwA/gEAAQYBBwEIAREBGgAAAAAAAAIB\
    AAAAAAAAADIAAAAAAAAAAAAAAAAAAAEj
    """

  private func aae(_ data: String, kind: String = "com.apple.video.slomo") -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0">
    <dict>
      <key>adjustmentBaseVersion</key>
      <integer>0</integer>
      <key>adjustmentData</key>
      <data>
      \(data)
      </data>
      <key>adjustmentFormatIdentifier</key>
      <string>\(kind)</string>
      <key>adjustmentFormatVersion</key>
      <string>1.1</string>
    </dict>
    </plist>
    """
  }

  @Test func `An iPhone AAE file gives the slow-motion range and speed`() throws {
    for data in [Self.plain, Self.crowded] {
      let markers = try SlowMotionMarkers(aae: aae(data))
      let range = try TimeRange(
        start: MediaTime(268, over: 600),
        duration: MediaTime(737, over: 600))
      #expect(markers.changes == [.init(try .of(1, 8), in: range)])
      let source = try MediaSource(path: "IMG.MOV", duration: MediaTime(seconds: 3))
      let composition = try markers.composition(of: source)
      // The clip of 3 s has 737/600 s that last eight times as long.
      #expect(composition.duration.seconds == (Rational(6_959, over: 600)))
      // If the clip ends inside the slow range, the range ends with the clip.
      let short = try MediaSource(path: "IMG.MOV", duration: MediaTime(seconds: 1))
      #expect(try markers.composition(of: short).segments.count == 2)
    }
  }

  @Test func `AAE files of photos and damaged AAE files are refused`() {
    for text in ["", "<plist>", aae(Self.plain, kind: "com.apple.photo"), aae("AAAA"), aae("%%")] {
      let error = #expect(throws: MediaError.self) { try SlowMotionMarkers(aae: text) }
      #expect(error?.code == .invalidProject)
    }
  }

  /// A binary property list of arrays, each nested in the previous one.
  private static func nested(_ count: Int) -> String {
    var bytes = Array("bplist00".utf8)
    var offsets: [Int] = []
    func number(_ value: Int, _ size: Int) -> [UInt8] {
      (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    for index in 1...count {
      offsets.append(bytes.count)
      bytes += index < count ? [0xA1] + number(index, 4) : [0x09]
    }
    let table = bytes.count
    for offset in offsets { bytes += number(offset, 4) }
    bytes += number(0, 6) + [4, 4] + number(count, 8) + number(0, 8) + number(table, 8)
    return Data(bytes).base64EncodedString()
  }

  @Test func `Deeply nested property lists are refused`() {
    let deep = String(repeating: "<array>", count: 200_000)
    for text in [aae(Self.nested(200_000)), "<plist>\(deep)", aae("</data>\(deep)"), "((((((("] {
      let error = #expect(throws: MediaError.self) { try SlowMotionMarkers(aae: text) }
      #expect(error?.code == .invalidProject)
    }
  }

  @Test func `A damaged AAE file gives an error or valid ranges`() throws {
    var random = SeededGenerator(seed: 3)
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let whole = Array(Self.crowded)
    for _ in 0..<RunSize.cases(2_500, full: 10_000) {
      var damaged = whole
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        damaged[Int.random(in: 0..<damaged.count, using: &random)] =
          letters.randomElement(using: &random) ?? "A"
      }
      do throws(MediaError) {
        for change in try SlowMotionMarkers(aae: aae(String(damaged))).changes {
          #expect(!change.range.isEmpty)
        }
      } catch { #expect(error.code == .invalidProject) }
    }
  }

  @Test func `An Android speed marker applies until the next marker`() throws {
    func marker(_ microseconds: Int64, _ speed: Float) -> [UInt8] {
      let time = (0..<8).reversed().map { UInt8(truncatingIfNeeded: microseconds >> ($0 * 8)) }
      return time
        + (0..<4).reversed().map { UInt8(truncatingIfNeeded: speed.bitPattern >> ($0 * 8)) }
    }
    let bytes: [UInt8] =
      [0x3F, 0x80, 0, 0, 0, 0, 0, 3] + marker(0, 1) + marker(1_000_000, 0.125)
      + marker(2_500_000, 0.3)
    let markers = try SlowMotionMarkers(android: bytes, duration: MediaTime(seconds: 4))
    #expect(
      markers.changes == [
        .init(try .of(1, 8), in: try .of(2, 5, per: 2)),
        .init(try .of(3, 10), in: try .of(5, 8, per: 2)),
      ])
    for damaged in [[], Array(bytes.dropLast()), [0, 0, 0, 0, 255, 255, 255, 255]] as [[UInt8]] {
      #expect(throws: MediaError.self) {
        try SlowMotionMarkers(android: damaged, duration: MediaTime(seconds: 4))
      }
    }
    let backwards = Array(bytes[..<8]) + Array(bytes[32...]) + Array(bytes[8..<32])
    #expect(throws: MediaError.self) {
      try SlowMotionMarkers(android: backwards, duration: MediaTime(seconds: 4))
    }
  }
}
