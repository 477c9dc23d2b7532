// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore

/// A trigger by motion: the first changed image after a quiet period.
///
/// Images 1/30 s apart are compared by the mean luma of the cells of a grid. This needs little
/// computation, and delays the detection by at most 1/30 s. A change in brightness of the whole
/// image, for example when a light is switched on, does not count as motion.
public struct MotionTrigger: Hashable, Sendable {
  /// The fraction of the image that must change, above 0 and at most 1.
  public var share: Double
  /// The time without motion that must precede a trigger.
  public var quietPeriod: MediaTime

  /// Creates the settings of a motion trigger.
  ///
  /// Continuous motion gives one trigger.
  public init(share: Double = 0.02, quietPeriod: MediaTime = MediaTime(seconds: 1)) {
    self.share = share
    self.quietPeriod = quietPeriod
  }

  /// The interval between the images that are compared to detect motion.
  static let interval = MediaTime(microseconds: 33_000)

  /// Detects motion triggers in a series of images.
  struct Detector {
    /// The least change of a cell's mean luma, on a scale of 0 to 255.
    ///
    /// It is several times the sensor noise of the mean, because a cell has many pixels.
    private static let step = 8.0

    private let settings: MotionTrigger
    private var last: [Double] = []
    /// The time of the last motion, in microseconds of the capture clock.
    private var lastMotion: Int64?

    init(_ settings: MotionTrigger) { self.settings = settings }

    /// Whether a gray image triggers a clip.
    ///
    /// `time` is the capture time of the image in microseconds.
    mutating func see(_ frame: PixelBuffer, at time: Int64) -> Bool {
      let averages = BrightnessGrid(frame).averages
      defer { last = averages }
      guard last.count == averages.count, !averages.isEmpty else { return false }
      let changes = zip(averages, last).map { $0 - $1 }
      let common = changes.sorted()[changes.count / 2]
      let moved = changes.count { abs($0 - common) >= Self.step }
      guard moved > 0, Double(moved) >= settings.share * Double(changes.count) else { return false }
      let quiet =
        (try? settings.quietPeriod.converted(to: 1_000_000, rounding: .towardPositiveInfinity))?
        .value ?? .max
      defer { lastMotion = time }
      return lastMotion.map { time - $0 > quiet } ?? true
    }
  }
}
