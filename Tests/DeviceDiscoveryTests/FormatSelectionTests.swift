// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery

/// The choice of the fastest mode.
struct FormatSelectionTests {
  @Test(
    "Chooses the fastest of several formats",
    arguments: [
      // Frame rates are compared exactly. With integer division these rates would be equal.
      (["640x480@59.94/yuyv", "320x240@60/yuyv"], "320x240@60/yuyv"),
      (["640x480@119.88/mjpg", "640x480@120/yuyv"], "640x480@120/yuyv"),
      (["640x480@120/mjpg", "640x480@1201:10/yuyv"], "640x480@1201/10/yuyv"),
      // Among formats of equal rate, the order is: area, color model, bits per pixel, and the order
      // in which the driver lists them.
      (["640x480@60/mjpg", "1280x720@60/grey"], "1280x720@60/grey"),
      (["640x480@60/ar24", "640x480@60/mjpg"], "640x480@60/mjpg"),
      (["640x480@60/y16", "640x480@60/yu12"], "640x480@60/yu12"),
      (["640x480@60/byr2", "640x480@60/grey"], "640x480@60/grey"),
      (["640x480@60/yuyv", "640x480@60/rgb3", "640x480@60/xr24"], "640x480@60/xr24"),
      (["640x480@60/uyvy", "640x480@60/yuyv"], "640x480@60/uyvy"),
      // A format that cannot be stored is never chosen. A range counts with its highest rate.
      (["640x480@240/yv12", "640x480@30/yuyv"], "640x480@30/yuyv"),
      (["640x480@1...90/yuyv", "640x480@60/mjpg"], "640x480@90/yuyv"),
    ])
  func fastest(texts: [String], expected: String) throws {
    let formats = try texts.enumerated().map { try CaptureFormat.make($1, order: $0) }
    #expect(FormatSelection.fastest(among: formats)?.id == expected)
    #expect(FormatSelection.fastest(among: formats.reversed())?.id == expected)
  }

  @Test func `Never chooses emulated or excluded formats`() throws {
    let emulated = try CaptureFormat.make("640x480@240/rgb3", isEmulated: true)
    let native = try CaptureFormat.make("640x480@30/yuyv", order: 1)
    #expect(FormatSelection.fastest(among: [emulated, native]) == native)
    #expect(FormatSelection.fastest(among: [emulated]) == nil)
    #expect(FormatSelection.fastest(among: [native], where: \.isCompressed) == nil)
    #expect(FormatSelection.fastest(among: []) == nil)
  }

  @Test func `A search and a full sort find the same fastest format`() throws {
    var random = SeededGenerator(seed: 3)
    let rates = ["1", "30", "29.97", "59.94", "60", "119.88", "120", "1201:10", "1...120"]
    let fourccs = ["MJPG", "YUYV", "UYVY", "GREY", "Y16", "BA81", "XR24", "YV12", "H264", "NV12"]
    for _ in 0..<400 {
      let count = Int(random.next() % 60)
      let formats = try (0..<count).map { order in
        let size = random.pick(["320x180", "640x360", "360x640", "1280x720"])
        return try CaptureFormat.make(
          "\(size)@\(random.pick(rates))/\(random.pick(fourccs))", order: order,
          isEmulated: random.next() % 8 == 0)
      }
      #expect(FormatSelection.fastest(among: formats) == fastestBySorting(formats))
      #expect(
        FormatSelection.fastest(among: formats.shuffled(using: &random))
          == fastestBySorting(formats))
    }
  }

  /// Sorts stably by one key after another, beginning with the least important key.
  private func fastestBySorting(_ formats: [CaptureFormat]) -> CaptureFormat? {
    let classes: [String: Int] = [
      "MJPG": 0, "H264": 0, "YUYV": 1, "UYVY": 1, "NV12": 1, "XR24": 1, "GREY": 2, "Y16": 2,
      "BA81": 3,
    ]
    let bits: [String: Int] = [
      "YUYV": 16, "UYVY": 16, "NV12": 12, "XR24": 32, "GREY": 8, "Y16": 16, "BA81": 8,
    ]
    func key<Key: Comparable>(
      _ formats: [CaptureFormat], _ key: (CaptureFormat) -> Key, descending: Bool = false
    ) -> [CaptureFormat] {
      formats.sorted { descending ? key($0) > key($1) : key($0) < key($1) }
    }
    var sorted = formats.filter { !$0.isEmulated && classes[$0.fourcc.description] != nil }
    sorted = key(sorted, \.driverOrder)
    sorted = key(sorted, { bits[$0.fourcc.description] ?? 0 }, descending: true)
    sorted = key(sorted, { classes[$0.fourcc.description] ?? 9 })
    sorted = key(sorted, { $0.width * $0.height }, descending: true)
    sorted = key(sorted, { $0.maxFrameRate.framesPerSecond }, descending: true)
    return sorted.first
  }
}
