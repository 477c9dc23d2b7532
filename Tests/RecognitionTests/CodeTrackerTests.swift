// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankRecognition

/// Codes in consecutive frames.
struct CodeTrackerTests {
  private static let (width, height) = (CodeFrames.width, CodeFrames.height)

  /// The frame with its content moved to the right.
  private func moved(_ pixels: [UInt8], by shift: Int) -> [UInt8] {
    var result = pixels
    for row in 0..<Self.height {
      let line = row * Self.width
      for column in 0..<Self.width {
        result[line + column] = pixels[line + (column - shift + Self.width) % Self.width]
      }
    }
    return result
  }

  private func pixels(_ type: String, _ text: String) async throws -> [UInt8] {
    let set = try await CodeFrames("--only", type, text)
    return try set.pixels(set.frames[0])
  }

  @Test func `Follows a moving code in a small crop of each frame`()
    async throws
  {
    let still = try await pixels("qr", "runner 17")
    var tracker = CodeTracker(try CodeReader(), agreement: 2)
    var (whole, crops) = (0, 0)
    for index in 0..<60 {
      // The code moves by 12 pixels per frame, at 240 frames per second.
      let found = try moved(still, by: index * 6).withLuma {
        tracker.look(at: $0, microseconds: Int64(index) * 4_167)
      }
      #expect(found.map(\.text) == (index == 0 ? [] : ["runner 17"]), "\(index)")
      if let code = found.first { #expect(abs(code.center.x - Double(640 + index * 6)) < 3) }
      for pass in tracker.passes {
        switch pass {
        case .whole: whole += 1
        case .crop(let type, let rect):
          crops += 1
          #expect(type == .qr && rect.width * rect.height < 200 * 200)
        }
      }
    }
    // The 60 frames last a quarter of a second.
    #expect(whole == 3 && crops >= 56, "\(whole) \(crops)")
  }

  @Test func `Reports a code only after it was read in two frames`()
    async throws
  {
    let (first, second) = (try await pixels("qr", "A"), try await pixels("qr", "B"))
    var tracker = CodeTracker(try CodeReader(), agreement: 2)
    var texts: [[String?]] = []
    // Enough time passes between frames to search each whole frame.
    for (index, pixels) in [first, second, first, second, second].enumerated() {
      try pixels.withLuma { luma in
        texts.append(tracker.look(at: luma, microseconds: Int64(index) * 400_000).map(\.text))
      }
    }
    #expect(texts == [[], [], ["A"], ["B"], ["B"]])
    let blank = [UInt8](repeating: 128, count: Self.width * Self.height)
    for index in 5..<14 {
      #expect(
        try blank.withLuma { tracker.look(at: $0, microseconds: 1_600_000 + Int64(index)) }.isEmpty)
    }
    #expect(tracker.passes.isEmpty, "a code that is gone costs nothing")
  }

  @Test func `Code searches of whole frames alternate three effort levels`() throws {
    let blank = [UInt8](repeating: 128, count: 64 * 64)
    var tracker = CodeTracker(try CodeReader(types: [.qr]), agreement: 2)
    var efforts: [CodeReader.Effort] = []
    for index in 0..<240 {
      _ = try blank.withLuma(width: 64, height: 64) {
        tracker.look(at: $0, microseconds: Int64(index) * 4_167)
      }
      for case .whole(let effort) in tracker.passes { efforts.append(effort) }
    }
    #expect(efforts.count == 12)
    #expect(Array(efforts.prefix(4)) == CodeTracker.passes && Set(efforts).count == 3)
  }

  @Test func `Finds only codes with their center in the area of interest`()
    async throws
  {
    let pixels = try await pixels("datamatrix", "gate 3")
    func look(_ area: PixelRect) throws -> [DetectedCode] {
      var tracker = CodeTracker(try CodeReader(), agreement: 1)
      return try pixels.withLuma { tracker.look(at: $0, in: area, microseconds: 0) }
    }
    let inside = try look(PixelRect(x: 500, y: 200, width: 300, height: 320))
    #expect(inside.count == 1)
    #expect(inside.allSatisfy { abs($0.center.x - 640) < 4 && abs($0.center.y - 360) < 4 })
    #expect(try look(PixelRect(x: 0, y: 0, width: 600, height: 720)).isEmpty)
    #expect(try look(PixelRect(x: 900, y: 0, width: 0, height: 0)).isEmpty)
  }

  @Test func `Recognition rests to stay within its processor time share`() {
    var budget = ProcessorBudget(share: 0.25)
    #expect(budget.rest(at: 5) == 0)
    budget.spend(from: 1_000, used: 100)
    #expect(budget.rest(at: 1_100) == 308 && budget.rest(at: 1_408) == 0)
    #expect(budget.rest(at: 9_000) == 0)
    var all = ProcessorBudget(share: 1)
    all.spend(from: 1_000, used: 100)
    #expect(all.rest(at: 1_050) == 0)
    var random = SeededGenerator(seed: 66)
    for share in [0.1, 0.25, 0.6] {
      // The first task is the longest.
      checkShare(share, first: 400_000, longest: 400_000, counted: 100, &random)
      // Later tasks take half as much again as the first, and a hundredth of each is not counted.
      let used = checkShare(share, first: 200_000, longest: 300_000, counted: 99, &random)
      // Half of the share is used even so.
      #expect(used > share / 2)
    }
  }

  /// Checks the share of any ten seconds, with tasks of random lengths in microseconds.
  ///
  /// - Returns: The share of the whole time.
  @discardableResult
  private func checkShare(
    _ share: Double, first: Int64, longest: Int64, counted: Int64, _ random: inout SeededGenerator
  ) -> Double {
    var budget = ProcessorBudget(share: share)
    var tasks: [Range<Int64>] = []
    var now: Int64 = 0
    while now < 60_000_000 {
      let length = tasks.isEmpty ? first : Int64.random(in: 1_000...longest, using: &random)
      tasks.append(now..<now + length)
      now += length
      budget.spend(from: now - length, used: length * counted / 100)
      now += budget.rest(at: now)
    }
    for first in tasks {
      let window = first.lowerBound..<first.lowerBound + ProcessorBudget.window
      let used = tasks.reduce(0) { $0 + Int64($1.clamped(to: window).count) }
      #expect(Double(used) <= share * Double(ProcessorBudget.window) + 1, "\(share)")
    }
    return Double(tasks.reduce(0) { $0 + $1.count }) / Double(now)
  }
}
