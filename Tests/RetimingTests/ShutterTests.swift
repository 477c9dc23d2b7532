// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// The frames that an open shutter averages, and their weights.
struct ShutterTests {
  /// Random source frames, in units of 1/8000 of an output frame.
  ///
  /// All times are whole ticks of the code under test.
  private struct Scene {
    static let slotTicks: Int64 = 8000
    let starts: [Int64]
    let end: Int64
    let degrees: Int64
    let grid: OutputFrameGrid

    init(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed)
      let steps: [Int64] =
        [[0, 7, 250, 2000], [300, 450, 1800], [8000, 20_000, 4000]]
        .randomElement(using: &random) ?? []
      var tick = Int64.random(in: -3000...3000, using: &random)
      starts = (0..<Int.random(in: 1...60, using: &random)).map { _ in
        defer { tick += steps.randomElement(using: &random) ?? 0 }
        return tick
      }
      end = max(1, tick + .random(in: 1...9000, using: &random))
      degrees = [9, 36, 45, 90, 180, 270, 288, 360].randomElement(using: &random) ?? 180
      grid = try OutputFrameGrid(
        duration: Self.seconds(end), rate: FrameRate(25), sourceTick: .zero)
    }

    static func seconds(_ ticks: Int64) -> Rational {
      Rational(Int128(ticks), over: Int128(25 * slotTicks))
    }

    var times: [Rational] { starts.map(Self.seconds) }
    var shutter: ShutterAngle? { ShutterAngle(exactly: Rational(degrees)) }

    /// The ticks of an output frame in which the shutter is open.
    func window(_ slot: Int64) -> Range<Int64> {
      let start = slot * Self.slotTicks
      return start..<max(start + 1, min(start + Self.slotTicks * degrees / 360, end))
    }
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func `Motion blur weights each frame by its time in the shutter`(seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    let shutter = try #require(scene.shutter)
    let made = try scene.grid.frames(
      of: scene.times, until: Scene.seconds(scene.end), .blend, shutter: shutter)
    #expect(made.reduce(0) { $0 + $1.count } == scene.grid.count)
    var slot: Int64 = 0
    for image in made {
      for _ in 0..<image.count {
        // The expected weights of source frames are counted tick by tick.
        var ticksOf: [Int: Int64] = [:]
        let window = scene.window(slot)
        for tick in window { ticksOf[scene.starts.lastIndex { $0 <= tick } ?? 0, default: 0] += 1 }
        #expect(image.parts.map(\.frame) == ticksOf.keys.sorted())
        for part in image.parts where window.count > 1 {
          #expect(part.share * Int64(window.count) == (ticksOf[part.frame] ?? 0) * image.total)
        }
        slot += 1
      }
    }
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func `Motion blur synthesizes frames if captured frames are few`(
    seed: UInt64
  ) throws {
    let scene = try Scene(seed: seed)
    let shutter = try #require(scene.shutter)
    let content = try ShutterContent(
      of: scene.times, until: Scene.seconds(scene.end), scene.grid, shutter)
    let blended = content.blended.flatMap { Array(repeating: $0, count: Int($0.count)) }
    let made = content.exposures
    #expect(made.count == Int(scene.grid.count))
    for (slot, exposure) in made.enumerated() {
      let window = scene.window(Int64(slot))
      guard window.count >= 16 else { continue }
      #expect(zip(exposure.times, exposure.times.dropFirst()).allSatisfy { $0 < $1 })
      // If enough captured frames are visible, the motion blur equals a blend of these frames.
      let visible = blended[slot].parts
      #expect((exposure.frames != nil) == (visible.count >= 8))
      if let frames = exposure.frames {
        #expect(frames == visible.map(\.frame) && exposure.shares == visible.map(\.share))
        #expect(exposure.times == frames.map { scene.times[$0] })
        continue
      }
      let range = Scene.seconds(window.lowerBound)..<Scene.seconds(window.upperBound)
      #expect(exposure.times.allSatisfy { range.contains($0) })
      // Only one of several frames at the same time is visible.
      let inside = Set(scene.starts.filter { window.contains($0) }).sorted()
      let total = Double(exposure.shares.reduce(0, +))
      let captured = Set(scene.times)
      #expect(exposure.times.filter { captured.contains($0) } == inside.map(Scene.seconds))
      // The exposure has eight parts of equal weight. Each part shows the frames that start in it,
      // or the frame at its middle if no frame starts in it.
      var due: [(time: Rational, share: Double)] = []
      for part in 0..<8 {
        let edges = [part, part + 1].map { Int64(window.count) * Int64($0) }
        let frames = inside.filter {
          (edges[0]..<edges[1]).contains(($0 - window.lowerBound) * 8)
        }
        due += frames.map { (Scene.seconds($0), 1.0 / 8 / Double(frames.count)) }
        if frames.isEmpty {
          let middle = Rational(Int64(window.count) * Int64(2 * part + 1)) / 16
          due.append((Scene.seconds(window.lowerBound) + middle / 200_000, 1.0 / 8))
        }
      }
      #expect(exposure.times.count == due.count)
      for (number, (time, share)) in due.enumerated() {
        #expect(abs((exposure.times[number] - time).doubleValue) < 1e-9)
        #expect(abs(Double(exposure.shares[number]) / total - share) < 1e-12)
      }
    }
  }

  @Test func `A shutter angle of 360 degrees equals blending all frames`() throws {
    for text in ["0", "-1", "361", "x", "1/0", "360.0001"] {
      #expect(throws: MediaError.self) { try ShutterAngle(parsing: text) }
    }
    #expect(try ShutterAngle(parsing: "360") == .full)
    #expect(try ShutterAngle(parsing: "172.8").degrees == Rational(864, over: 5))
    #expect(ShutterAngle(exactly: .invalid) == nil && ShutterAngle(exactly: 0) == nil)
    let scene = try Scene(seed: 3)
    let end = Scene.seconds(scene.end)
    #expect(
      try scene.grid.frames(of: scene.times, until: end, .blend)
        == scene.grid.frames(of: scene.times, until: end, .blend, shutter: .full))
    // A shutter angle that needs more ticks per output frame than an integer can hold is refused.
    let fine = try #require(ShutterAngle(exactly: Rational(1, over: .max)))
    let error = #expect(throws: MediaError.self) {
      try ShutterContent(of: scene.times, until: end, scene.grid, fine)
    }
    #expect(error?.code == .notExact)
  }
}
