// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankMediaCore
import Testing

@testable import OvercrankPreview

/// Marks and displays of a preview, such as focus peaking, compared with tables.
struct PreviewAidsTests {
  /// A BGRA image from rows of characters.
  ///
  /// Each character is a gray level: `.` black, `o` half, `#` white.
  private func image(_ rows: [String]) -> PixelBuffer {
    let levels: [Character: UInt8] = [".": 0, "o": 128, "#": 255]
    var image = PixelBuffer(format: .bgra)
    let width = rows[0].count
    image.resize(
      width: width, height: rows.count,
      planes: [
        PixelBuffer.Plane(offset: 0, bytesPerRow: width * 4, rowCount: rows.count)
      ], byteCount: width * rows.count * 4)
    let gray = rows.joined().map { levels[$0] ?? 0 }
    image.withUnsafeMutableBytes { bytes in
      for (index, level) in gray.enumerated() {
        for channel in 0..<3 { bytes[index * 4 + channel] = level }
        bytes[index * 4 + 3] = 255
      }
    }
    return image
  }

  /// The pixels of an image after its marks are drawn: `R` red, `.` black, `o` half, `#` white.
  private func rows(_ image: PixelBuffer) -> [String] {
    (0..<image.height).map { y in
      String(
        (0..<image.width).map { x -> Character in
          let offset = (y * image.width + x) * 4
          let (blue, green, red) = (
            image.bytes[offset], image.bytes[offset + 1], image.bytes[offset + 2]
          )
          guard red == green, green == blue else { return red == 255 && green == 0 ? "R" : "?" }
          return red == 0 ? "." : red == 128 ? "o" : red == 255 ? "#" : "?"
        })
    }
  }

  @Test func `Focus peaking marks both sides of a sharp edge red`() {
    var edge = image(["oo##oo", "oo##oo", "oo##oo", "oo##oo"])
    PreviewAids(showsFocusPeaking: true).apply(to: &edge)
    #expect(rows(edge) == ["oo##oo", "oRRRRo", "oRRRRo", "oo##oo"])
    var flat = image(["oooo", "oooo", "oooo"])
    PreviewAids(showsFocusPeaking: true).apply(to: &flat)
    #expect(rows(flat) == ["oooo", "oooo", "oooo"])
    var aids = PreviewAids(showsFocusPeaking: true)
    aids.peakingThreshold = 1_021
    var blind = image(["...", ".#.", "..."])
    aids.apply(to: &blind)
    #expect(rows(blind) == ["...", ".#.", "..."])
  }

  @Test func `Zebra stripes mark only bright areas`() {
    var bright = image(["########oo", "########oo"])
    PreviewAids(showsZebra: true).apply(to: &bright)
    #expect(rows(bright) == ["....####oo", "...####.oo"])
    var none = image(["####"])
    PreviewAids().apply(to: &none)
    #expect(rows(none) == ["####"])
  }

  @Test func `A luma histogram counts each pixel once`() {
    let histogram = LumaHistogram(image(["..##", "oo##"]), step: 1)
    #expect(histogram.pixelCount == 8 && histogram.bins.reduce(0, +) == 8)
    #expect(histogram.bins[0] == 2 && histogram.bins[32] == 2 && histogram.bins[63] == 4)
    #expect(histogram.blackPart == 0.25 && histogram.clippedPart == 0.5)
    #expect(LumaHistogram(image(["#..#", "....", "....", "...."]), step: 4).pixelCount == 1)
    #expect(LumaHistogram(PixelBuffer(format: .gray)).pixelCount == 0)
  }

  @Test func `The meter level falls 20 dB in 1.7 s while the peak is held`() {
    // The time in milliseconds, the measured peak, and the displayed level and peak.
    let table: [(at: Int64, peak: Double, level: Double, held: Double)] = [
      (0, -.infinity, -60, -60), (100, -20, -20, -20), (950, -.infinity, -30, -20),
      (1_599, -.infinity, -37.6353, -20), (1_800, -.infinity, -40, -40),
      (1_900, -12, -12, -12), (3_600, -.infinity, -32, -32), (3_700, .nan, -33.1765, -32),
      (60_000, -.infinity, -60, -60),
    ]
    var meter = LevelMeterDisplay()
    for row in table {
      meter.update(peakDBFS: row.peak, at: MediaTime(row.at, over: 1_000))
      #expect(abs(meter.levelDBFS - row.level) < 1e-3, "\(row.at) ms: \(meter.levelDBFS)")
      #expect(abs(meter.heldPeakDBFS - row.held) < 1e-3, "\(row.at) ms: \(meter.heldPeakDBFS)")
      #expect(!meter.hasClipped)
    }
    meter.update(peakDBFS: 0, at: MediaTime(seconds: 61))
    meter.update(peakDBFS: -40, at: MediaTime(seconds: 90))
    #expect(meter.hasClipped && abs(meter.levelPart - 1.0 / 3) < 1e-9)
    meter.resetClipping()
    #expect(!meter.hasClipped)
  }

  @Test func `Preview statistics give missing frame count and frame rate`() throws {
    let counter = ArrivalCounter()
    #expect(counter.arrivals.newestTime == nil)
    // The sequence number wraps after two frames, skips two and one, repeats 5, and restarts at 1.
    let sequences: [UInt32] = [4_294_967_294, 4_294_967_295, 0, 3, 5, 5, 1]
    var first: PreviewArrivals?
    for (index, sequence) in sequences.enumerated() {
      counter.note(FrameObservation(sequence: sequence, microseconds: Int64(index) * 4_000))
      first = first ?? counter.arrivals
    }
    let arrivals = counter.arrivals
    #expect(arrivals.frameCount == 7 && arrivals.missingCount == 3)
    #expect(arrivals.newestTime == MediaTime(microseconds: 24_000))
    #expect(arrivals.frameRate(since: try #require(first)) == 250)
    #expect(arrivals.frameRate(since: arrivals) == nil)
  }

  @Test func `A preview lags by a fixed delay or plays in slow motion`() {
    let constant = PreviewSchedule(delay: 12_000_000, speed: .normal, start: 0)
    #expect(constant.shownTime(at: 20_000_000) == 8_000_000)
    // At half speed the delay grows to 4 s in 8 s, and then starts again at zero.
    let slow = PreviewSchedule(delay: 4_000_000, speed: Speed(1, over: 2), start: 1_000_000)
    let table: [(at: Int64, shown: Int64)] = [
      (1_000_000, 1_000_000), (3_000_000, 2_000_000), (8_999_998, 4_999_999),
      (9_000_000, 9_000_000), (11_000_000, 10_000_000), (17_000_002, 17_000_001),
    ]
    for row in table { #expect(slow.shownTime(at: row.at) == row.shown, "\(row.at)") }
  }
}
