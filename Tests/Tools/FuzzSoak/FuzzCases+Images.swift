// SPDX-License-Identifier: Apache-2.0

import OvercrankAnalysis
import OvercrankAssets
import OvercrankExport
import OvercrankMediaCore
import TestSupport

extension FuzzCases {
  /// A PNG image of a logo for the corner of a movie.
  static func logo(of asset: Asset) throws -> [UInt8] {
    var reader = try FrameReader(asset)
    var writer = PNGWriter()
    return try writer.data(of: 0, from: &reader)
  }

  /// Settings for burned-in text and sometimes a logo, whose file may be damaged or missing.
  func burnIn(_ mark: MediaTime?, _ random: inout SeededGenerator) throws -> BurnIn {
    let items = BurnIn.Item.allCases.filter { _ in Bool.random(using: &random) }
    var burnIn = BurnIn(items: items, mark: mark)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: burnIn.logoPath = try directory.write(logo, as: "logo.png")
    case 1, 2:
      var mutation = Mutation(random: random)
      let bytes = mutation.movie(logo, index: 0..<min(64, logo.count))
      random = mutation.random
      burnIn.logoPath = try directory.write(bytes, as: "logo.png")
    case 3: burnIn.logoPath = directory.file("no-logo.png")
    default: break
    }
    return burnIn
  }

  /// Writes a comparison of movies, side by side or blended, with text.
  func compare(
    _ clips: [ClipComparison.Clip], _ random: inout SeededGenerator, isCancelled: () -> Bool
  ) throws -> String {
    let speeds = [Speed.normal, Speed(1, over: 8), Speed(7, over: 3), Speed(1_000)]
    var comparison = ClipComparison(
      clips, frameRate: [30, 240, FrameRate(1, over: 7)].randomElement(using: &random) ?? 30,
      speed: speeds.randomElement(using: &random) ?? .normal,
      layout: ClipComparison.Layout.allCases.randomElement(using: &random) ?? .side)
    if Bool.random(using: &random) {
      let mark = MediaTime(.random(in: -300...300, using: &random), over: 240)
      comparison.burnIn = try burnIn(Bool.random(using: &random) ? nil : mark, &random)
    }
    let path = directory.file("compared.mp4")
    let plan: ClipComparison.Plan
    do throws(MediaError) {
      plan = try comparison.write(to: path, overwrites: true, isCancelled: isCancelled)
    } catch {
      guard error.code != .cancelled else { return "comparison cancelled" }
      throw error
    }
    let count = try Asset(path: path).videoTrack?.frameCount
    guard count == plan.frameCount else {
      throw WrongPlayback(description: "a comparison of \(count ?? 0) frames")
    }
    return "comparison of \(plan.frameCount) frames"
  }

  /// Reads frames as raw bytes in a random order.
  ///
  /// Some of the frames do not exist in the movie.
  func rawFrames(_ asset: Asset, _ random: inout SeededGenerator) throws -> String {
    let count = asset.videoTrack?.frameCount ?? 0
    let indices = (0..<Int.random(in: 0...12, using: &random)).map { _ in
      Int.random(in: -1...max(0, min(count, 1 << 20)), using: &random)
    }
    let formats = [PixelFormat.yuv420p, .gray, .rgb24, PixelFormat(rawValue: "gray16le")]
    let policies = [UndecodableFramePolicy.stop, .hold, .skip]
    var frames = try RawFrameSequence(
      asset, frames: indices, as: formats.randomElement(using: &random) ?? .gray,
      appliesRotation: Bool.random(using: &random),
      undecodable: policies.randomElement(using: &random) ?? .stop)
    var total = 0
    // A program may stop reading early, or continue after a read error.
    for _ in 0..<Int.random(in: 0...indices.count, using: &random) {
      let next: RawFrameSequence.Element?
      do throws(MediaError) { next = try frames.nextFrame() } catch { continue }
      guard let frame = next, frame.bytes?.count ?? 0 == frame.byteCount else {
        throw WrongPlayback(description: "a raw frame of \(next?.byteCount ?? -1) bytes")
      }
      total += frame.byteCount
    }
    return "raw frames of \(total) bytes"
  }
}
