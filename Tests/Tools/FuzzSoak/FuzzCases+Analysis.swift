// SPDX-License-Identifier: Apache-2.0

import OvercrankAnalysis
import OvercrankAssets
import OvercrankMediaCore
import OvercrankRaster
import TestSupport

extension FuzzCases {
  /// Measures a movie by one of the library's methods, with random settings.
  ///
  /// Each measurement ends with a result or a `MediaError`.
  func measure(
    _ asset: Asset, beside other: Asset, _ random: inout SeededGenerator
  ) throws -> String {
    // A damaged movie may state a duration of years, so the work ends after 200 progress checks.
    var checks = 0
    let isCancelled = {
      checks += 1
      return checks > 200
    }
    let start = MediaTime(.random(in: -1...200, using: &random), over: 240)
    switch Int.random(in: 0..<8, using: &random) {
    case 0:
      let methods = RecordingOffset.Method.allCases
      let offset = try RecordingSynchronizer(method: methods.randomElement(using: &random))
        .offset(of: asset, to: other, isCancelled: isCancelled)
      return "offset \(offset.offset)"
    case 1:
      func side() -> Int { [.min, -1, 0, 6, 9, 30, .max].randomElement(using: &random) ?? 0 }
      let box = PixelRect(
        x: .random(in: -2...100, using: &random), y: .random(in: -2...30, using: &random),
        width: side(), height: side())
      let methods = ObjectTracker.Method.allCases
      var tracker = ObjectTracker(method: methods.randomElement(using: &random) ?? .patch)
      tracker.reach = [nil, -5, 3, 60, .max].randomElement(using: &random) ?? nil
      let track = try tracker.track(asset, from: start, in: box, isCancelled: isCancelled)
      let speeds = try track.speeds(asset.captureClock())
      return "track \(track.points.count), \(speeds.count), \(track.lost.count)"
    case 2:
      let step = MediaTime(.random(in: -1...50, using: &random), over: 240)
      let composer = try StillComposer(asset, range: TimeRange(start: start, duration: step))
      return "strobe \(try composer.strobe(.every(step)).frames.count)"
    case 3:
      let rates: [FrameRate?] = [nil, 1, 240, FrameRate(Int(Int32.max))]
      let clock = try asset.captureClock(
        CaptureClock.Choice.allCases.randomElement(using: &random) ?? .capture,
        captureFrameRate: rates.randomElement(using: &random) ?? nil)
      let composer = try StillComposer(asset, clock: clock)
      let settings = StillComposer.FinishSettings(
        column: .random(in: -1...130, using: &random),
        slitWidth: .random(in: -1...9, using: &random))
      _ = try composer.photoFinish(settings)
      return "sheet \(try composer.contactSheet().frames.count)"
    case 4: return "trail \(try StillComposer(asset).trail().frames.count)"
    case 5:
      guard let index = asset.videoTrack?.frames.index(at: start) else { return "no frame" }
      return "lengths in frame \(index): \(try lengths(&random))"
    case 6: return try rawFrames(asset, &random)
    default:
      let clips = [ClipComparison.Clip(asset, origin: start), ClipComparison.Clip(other)]
      return try compare(clips, &random, isCancelled: isCancelled)
    }
  }

  /// Measures distances and angles between random points, and returns the number of results.
  ///
  /// Points and lengths can have any finite number. Uncertainties are never negative.
  private func lengths(_ random: inout SeededGenerator) throws -> Int {
    let extremes = [
      0, -0.0, 1, 0.5, -3, .leastNonzeroMagnitude, 1e-160, 1e160, .greatestFiniteMagnitude,
      -.greatestFiniteMagnitude,
    ]
    func number() -> Double {
      Bool.random(using: &random)
        ? .random(in: -2...130, using: &random) : extremes.randomElement(using: &random) ?? 0
    }
    func value() -> MeasuredValue { MeasuredValue(number(), uncertainty: number().magnitude) }
    let points = (0..<Int.random(in: 2...6, using: &random)).map { _ in
      Point(x: number(), y: number())
    }
    let measurement = ImageMeasurement(pointUncertainty: number())
    let scale = LengthScale(pixels: value(), meters: value())
    var results: [MeasuredValue] = []
    for (first, second) in zip(points, points.dropFirst()) {
      results.append(measurement.distance(from: first, to: second))
      if let scale { results.append(measurement.distance(from: first, to: second, scale: scale)) }
    }
    for number in 1..<points.count - 1 {
      let angle = measurement.angle(
        at: points[number], between: points[number - 1], and: points[number + 1])
      guard angle.value.isNaN || (0...180).contains(angle.value) else {
        throw WrongPlayback(description: "an angle of \(angle.value) degrees")
      }
      results.append(angle)
    }
    if let wrong = results.first(where: { $0.uncertainty < 0 }) {
      throw WrongPlayback(description: "an uncertainty of \(wrong.uncertainty)")
    }
    return results.count
  }
}
