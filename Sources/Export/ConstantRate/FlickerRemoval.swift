// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// The brightness gains that remove the flicker of lamps from the frames of an export.
///
/// The brightness of the frames is measured before the export renders them. The brightness of a
/// frame without flicker is taken from a straight line, fitted to the brightness of the frames
/// around it. The line follows a fade, so fades are kept.
struct FlickerRemoval: Sendable {
  /// The brightness gains of each source's frames, by frame index.
  private let gains: [[Int: Double]]

  /// The least number of frames before a frame, and of frames after it, with which its brightness
  /// is compared.
  static let minimumReach = 12
  /// The distance in capture seconds, before and after a frame, up to which other frames are
  /// compared with that frame.
  ///
  /// The time before and the time after the frame together contain ten periods of light that
  /// flickers at 100 Hz.
  private static let timeReach = Rational(1, over: 20)
  /// The greatest number of frames before a frame, and of frames after it, with which its
  /// brightness is compared.
  private static let maximumReach = 200
  /// The ratio of brightness beyond which a change is a scene cut and not flicker.
  private static let cut = 1.4

  /// Measures the brightness of the frames in a plan, and computes the brightness gain of each
  /// frame.
  ///
  /// - Throws: `MediaError` with `.cancelled`, or if a source cannot be read.
  init(
    _ frames: [ConstantRatePlan.Frame?], _ assets: [Asset], isCancelled: () -> Bool
  ) throws(MediaError) {
    var used: [Int: ClosedRange<Int>] = [:]
    for case let frame? in frames {
      let range = used[frame.source] ?? frame.index...frame.index
      used[frame.source] =
        min(range.lowerBound, frame.index)...max(range.upperBound, frame.index)
    }
    var gains: [[Int: Double]] = []
    for (source, asset) in assets.enumerated() {
      guard let track = asset.videoTrack, let used = used[source] else {
        gains.append([:])
        continue
      }
      let reach = Self.reach(at: asset.captureFrameRate?.rate ?? track.nominalFrameRate)
      // Near a scene cut, fewer frames are compared on the side of the cut, and up to twice as many
      // on the other side.
      let first = max(0, used.lowerBound - 2 * reach)
      let last = min(track.frameCount - 1, used.upperBound + 2 * reach)
      let range = first...last
      let brightness = try Self.brightness(of: asset, in: range, isCancelled)
      gains.append(
        Dictionary(
          uniqueKeysWithValues: zip(
            range, Self.gains(of: range.map { brightness[$0] }, reach: reach))))
    }
    self.gains = gains
  }

  /// Returns the factor by which the brightness of a frame is multiplied.
  func gain(of frame: ConstantRatePlan.Frame) -> Double { gains[frame.source][frame.index] ?? 1 }

  /// Returns the number of frames before a frame, and of frames after it, with which the frame is
  /// compared at a capture rate.
  static func reach(at rate: FrameRate?) -> Int {
    let frames = rate.map { ($0.framesPerSecond * timeReach).doubleValue } ?? 0
    return Int(min(max(frames.rounded(), Double(minimumReach)), Double(maximumReach)))
  }

  /// Returns the mean luma of each frame that can be decoded.
  private static func brightness(
    of asset: Asset, in range: ClosedRange<Int>, _ isCancelled: () -> Bool
  ) throws(MediaError) -> [Int: Double] {
    var reader = try FrameReader(asset)
    // The mean luma does not change if the image is reduced.
    var converter = FrameConverter(to: .gray8, isFullRange: true, width: 64, height: 48)
    var brightness: [Int: Double] = [:]
    try reader.readFrames(in: range, wanted: { _ in true }, shouldContinue: { !isCancelled() }) {
      guard let image = try? converter.convert($1), let bytes = try? image.packedBytes() else {
        return true
      }
      brightness[$0] = Double(bytes.reduce(0) { $0 + Int($1) }) / Double(bytes.count)
      return true
    }
    if isCancelled() { throw .exportCancelled }
    return brightness
  }

  /// Returns the gains of consecutive frames.
  ///
  /// The gain is 1 where the brightness is unknown.
  static func gains(of brightness: [Double?], reach: Int) -> [Double] {
    brightness.indices.map { index in
      guard let own = brightness[index], own > 1 else { return 1 }
      // Only the frames back to the previous scene cut and up to the next one are compared.
      let before = shot(brightness[..<index].suffix(2 * reach).reversed(), own)
      let after = shot(brightness[(index + 1)...].prefix(2 * reach), own)
      let past = before.prefix(max(reach, 2 * reach - after.count))
      let next = after.prefix(max(reach, 2 * reach - before.count))
      var points = [(x: 0.0, y: own)]
      points += past.enumerated().compactMap { at, y in y.map { (-Double(at + 1), $0) } }
      points += next.enumerated().compactMap { at, y in y.map { (Double(at + 1), $0) } }
      let calm = valueAtZero(points)
      // A brightness change by more than the ratio `cut` counts as a scene cut, so a correction by
      // more than this ratio is probably wrong and not applied.
      return calm < own * cut && own < calm * cut ? calm / own : 1
    }
  }

  /// Returns the brightness values of the frames before or after a frame, up to the first scene
  /// cut.
  private static func shot(_ side: some Sequence<Double?>, _ own: Double) -> [Double?] {
    Array(
      side.prefix { value in value.map { $0 < own * cut && own < $0 * cut } ?? true })
  }

  /// Returns the value at x = 0 of the straight line that fits the points with the least squared
  /// error.
  private static func valueAtZero(_ points: [(x: Double, y: Double)]) -> Double {
    let count = Double(points.count)
    let meanX = points.reduce(0) { $0 + $1.x } / count
    let meanY = points.reduce(0) { $0 + $1.y } / count
    let variance = points.reduce(0) { $0 + ($1.x - meanX) * ($1.x - meanX) }
    // A line through fewer points would follow the flicker itself, so their mean is used.
    guard points.count >= 6, variance > 0 else { return meanY }
    let slope = points.reduce(0) { $0 + ($1.x - meanX) * ($1.y - meanY) } / variance
    return meanY - slope * meanX
  }
}
