// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankExport

/// Exports that remove the flicker of lamps.
struct FlickerRemovalTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// The amplitude of 100 Hz flicker at a frame rate, in a part without cuts.
  private func amplitude(_ values: ArraySlice<Double>, rate: Double = 240) -> Double {
    let mean = values.reduce(0, +) / Double(values.count)
    var (real, imaginary) = (0.0, 0.0)
    for (number, value) in values.enumerated() {
      let phase = 2 * Double.pi * 100 * Double(number) / rate
      real += (value - mean) * cos(phase)
      imaginary += (value - mean) * sin(phase)
    }
    return 2 * hypot(real, imaginary) / Double(values.count)
  }

  /// Light with the flicker of lamps at 100 Hz, and a mean of 1.
  private func light(_ frame: Int, rate: Double = 240) -> Double {
    1 + 0.04 * sin(2 * Double.pi * 100 * Double(frame) / rate + 0.3)
  }

  /// The brightness of a scene without flicker: a fade, a cut, and then a constant part.
  private func scene(_ frame: Int) -> Double { frame < 120 ? 1 - 0.004 * Double(frame) : 1.6 }

  @Test(arguments: [60, 120, 240, 480, 1_000, 2_000] as [Int64])
  func `Flicker removal keeps brightness changes by fades and cuts`(rate: Int64) throws {
    let lit = (0..<240).map { 80 * scene($0) * light($0, rate: Double(rate)) }
    var known: [Double?] = lit
    known[50] = nil
    let reach = FlickerRemoval.reach(at: try FrameRate(Rational(rate)))
    let gains = FlickerRemoval.gains(of: known, reach: reach)
    #expect(gains[50] == 1)
    let calm = zip(lit, gains).map { $0 * $1 }
    for (index, value) in calm.enumerated() where index != 50 {
      let meant = 80 * scene(index)
      #expect(abs(value - meant) < 0.025 * meant, "frame \(index): \(value), not \(meant)")
    }
    let before = amplitude(lit[140..<236], rate: Double(rate))
    let after = amplitude(calm[140..<236], rate: Double(rate))
    #expect(before > 4.5 && after < before / 8, "\(before) before, \(after) after")
  }

  @Test func `Flicker gain does not depend on which frames are exported`() throws {
    let asset = try movie(.yuv420p)
    let all = (0..<240).map { ConstantRatePlan.Frame(source: 0, index: $0) }
    let whole = try FlickerRemoval(all, [asset], isCancelled: { false })
    for index in [0, 7, 100, 119, 120, 125, 239] {
      let one = try FlickerRemoval([nil, all[index]], [asset], isCancelled: { false })
      #expect(one.gain(of: all[index]) == whole.gain(of: all[index]), "frame \(index)")
    }
  }

  @Test func `Cancellation stops the flicker measurement`() throws {
    let asset = try movie(.yuv420p)
    var asked = 0
    let error = #expect(throws: MediaError.self) {
      try FlickerRemoval([.init(source: 0, index: 100)], [asset]) {
        asked += 1
        return asked > 3
      }
    }
    #expect(error?.code == .cancelled)
  }

  @Test(arguments: ["yuv420p", "yuv444p10le", "bgr0"])
  func `An export with flicker removal has no visible flicker`(name: String) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let asset = try movie(format)
    let source = try brightness(of: asset)
    let session = ExportSession(try Composition(asset), of: asset)
    var known: [Double]?
    for count in [1, 3] {
      var settings = ExportSettings(
        path: directory.file("\(count).mov"), mode: .constant(240, RenderSettings(encoding: .ffv1)))
      settings.render { $0.removesFlicker = true }
      settings.processorCount = count
      let calm = try brightness(of: Asset(path: session.export(settings).path))
      #expect(known == nil || known == calm)
      known = calm
    }
    let calm = try #require(known)
    #expect(calm.count == 240)
    for (index, value) in calm.enumerated() {
      let meant = 0.3 * scene(index)
      #expect(abs(value - meant) < 0.02 * meant, "frame \(index): \(value), not \(meant)")
    }
    let (before, after) = (amplitude(source[140..<236]), amplitude(calm[140..<236]))
    #expect(before > 0.015 && after < before / 15, "\(before) before, \(after) after")
  }

  /// A movie of the scene at 240 fps in flickering light.
  private func movie(_ format: LibAVPixelFormat) throws -> Asset {
    try .lossless(
      try (0..<240).map { try frame(format, scene($0) * light($0)) }, rate: 240,
      at: directory.file("lit.mov"))
  }

  /// A frame of bars with a mean signal level of 0.3 and some color.
  private func frame(_ format: LibAVPixelFormat, _ level: Double) throws -> MediaFrame {
    let layout = try #require(PixelComponents(format))
    let scale = Double(1 << (layout.depth - 8))
    return try FrameSamples.frame(width: 64, height: 48, format) { component, x, y in
      let number = component.number
      let bar = 0.3 + 0.1 * (Double(x * 4 / component.width) - 1.5)
      let code =
        layout.isRGB
        ? 255 * bar * level
        : number == 0 ? 16 + 219 * bar * level : 128 + Double(number * 9) * level
      // Rounding alternates between pixels, so that the mean keeps fractions of a code value.
      let offset = Double((x * 7 + y * 3) % 16) / 16
      return Int(code * scale + offset)
    }
  }

  /// The mean signal level of each frame from 0 to 1, of luma or of the first color.
  private func brightness(of asset: Asset) throws -> [Double] {
    var reader = try FrameReader(asset)
    return try (0..<(asset.videoTrack?.frameCount ?? 0)).map { index in
      let frame = try reader.mediaFrame(at: index)
      let layout = try #require(PixelComponents(frame.pixelFormat))
      var sum = 0
      for y in 0..<frame.height {
        for x in 0..<frame.width { sum += FrameSamples.code(frame, x: x, y: y) }
      }
      let code =
        Double(sum) / Double(frame.width * frame.height) / Double(1 << (layout.depth - 8))
      return layout.isRGB ? code / 255 : (code - 16) / 219
    }
  }
}

/// Brightness gains of frames.
struct FrameGainTests {
  @Test(arguments: ["yuv420p", "yuvj420p", "yuv422p10le", "gbrp", "rgb24", "gray", "yuva444p"])
  func `A flicker gain above 1 keeps the black level and alpha`(name: String) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let layout = try #require(PixelComponents(format))
    let isFullRange = format.isFullRange || name == "gray"
    let gain = try #require(FrameGain(pixelFormat: format, isFullRange: isFullRange))
    let scale = layout.depth > 8 ? 4 : 1
    let black = layout.isRGB || isFullRange ? 0 : 16 * scale
    func zero(_ number: Int) -> Int {
      number == 3 ? 0 : layout.isRGB || number == 0 ? black : 128 * scale
    }
    let frame = try FrameSamples.frame(width: 6, height: 4, format) { component, _, y in
      zero(component.number) + (y == 0 ? 0 : 40 * scale)
    }
    let brighter = try gain.apply(1.5, to: frame)
    for (number, component) in layout.components.enumerated() {
      let height = layout.size(of: component, width: 6, height: 4).height
      let bright = zero(number) + (number == 3 ? 40 : 60) * scale
      for (y, code) in [(0, zero(number)), (height - 1, bright)] {
        let found = FrameSamples.code(brighter, component: number, x: 0, y: y)
        #expect(found == code, "component \(number), row \(y)")
      }
    }
  }
}
