// SPDX-License-Identifier: Apache-2.0
import MediaTiming
import Testing

@testable import FormatDiscovery
@testable import V4L2

/// What a choice costs, told and not judged: a debug build and a busy machine take what they take.
///
/// What it takes in earnest is told by
/// `swift test -c release -Xswiftc -enable-testing --filter SelectionSpeed`.
struct SelectionSpeedTests {
  @Test func `A choice among 2000 modes is timed`() throws {
    var random = SeededRandom(seed: 11)
    let fourccs = ["MJPG", "YUYV", "NV12", "GREY", "XR24", "H264"]
    let formats = try (0..<2000).map { order in
      let size = random.pick(FrameSizeRange.wellKnown)
      let rate = random.pick(["30", "59.94", "60", "119.88", "120", "1201:10", "1...240"])
      return try CaptureFormat.make("\(size)@\(rate)/\(random.pick(fourccs))", order: order)
    }
    let request = try ModeRequest(parsing: "@120")
    func best(of body: () -> CaptureFormat?) -> Duration {
      (0..<20).map { _ in
        ContinuousClock().measure { _ = body() }
      }.min() ?? .zero
    }
    let fastest = best { FormatSelection.fastest(among: formats) }
    let chosen = best { request.choose(from: formats) }
    // The plain way: sort all, take the first.
    let sorted = best {
      formats.sorted {
        ($0.maxFrameRate, $0.width * $0.height) > ($1.maxFrameRate, $1.width * $1.height)
      }
      .first
    }
    print("choice among 2000 modes: fastest \(fastest), @120 \(chosen), sorting them \(sorted)")
    #expect(FormatSelection.fastest(among: formats)?.maxFrameRate.description == "240/1")
  }
}
