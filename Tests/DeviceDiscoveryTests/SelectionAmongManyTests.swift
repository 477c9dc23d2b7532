// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery

/// Choices among many modes, compared with a simple reference.
struct SelectionAmongManyTests {
  @Test(arguments: [11, 12, 13] as [UInt64])
  func `Chooses the largest of 2000 modes at the requested rate`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let fourccs = ["MJPG", "YUYV", "NV12", "GREY", "XR24", "H264"]
    let formats = try (0..<2000).map { order in
      let size = random.pick(FrameSizeRange.wellKnown)
      let text = random.pick(["30", "59.94", "60", "119.88", "120", "1201:10", "1...240"])
      return try CaptureFormat.make("\(size)@\(text)/\(random.pick(fourccs))", order: order)
    }
    // The reference takes the maximum of all formats that can be stored.
    func reference(_ isIn: (CaptureFormat) -> Bool) -> CaptureFormat? {
      formats.filter { $0.isStorable && isIn($0) }.max {
        ($0.maxFrameRate, $0.width * $0.height) < ($1.maxFrameRate, $1.width * $1.height)
      }
    }
    let fastest = try #require(FormatSelection.fastest(among: formats))
    let expected = try #require(reference { _ in true })
    #expect(fastest.maxFrameRate.description == "240/1")
    #expect(fastest.maxFrameRate == expected.maxFrameRate)
    #expect(fastest.width * fastest.height == expected.width * expected.height)
    // A requested rate gets the largest frame size that supports it.
    let rate = FrameRate(120)
    let chosen = try #require(try ModeRequest(parsing: "@120").choose(from: formats))
    let areas = formats.filter { $0.isStorable && $0.frameRateRange.contains(rate) }
      .map { $0.width * $0.height }
    #expect(chosen.maxFrameRate == rate)
    #expect(chosen.width * chosen.height == areas.max())
  }
}
