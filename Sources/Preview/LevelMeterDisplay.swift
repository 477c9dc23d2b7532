// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The level of an audio channel as a level meter on the screen shows it.
///
/// The level rises at once and falls by 20 dB in 1.7 s. The highest level stays for 1.5 s. The
/// overload mark stays until ``resetClipping()`` is called.
public struct LevelMeterDisplay: Hashable, Sendable {
  /// The level at the lower end of the scale, in dBFS.
  public static let minimumDBFS = -60.0
  /// The smallest peak level that counts as an overload, in dBFS.
  ///
  /// The greatest 16-bit sample value is above this level.
  static let overloadDBFS = -0.001
  private static let fallPerSecond = 20 / 1.7
  private static let holdSeconds = 1.5

  /// The level shown, from -60 to 0 dBFS.
  public private(set) var levelDBFS = minimumDBFS
  /// The highest level of the last 1.5 s, from -60 to 0 dBFS.
  public private(set) var heldPeakDBFS = minimumDBFS
  /// Whether a sample has reached full scale since the last reset.
  public private(set) var hasClipped = false
  private var time: MediaTime?
  private var heldTime = MediaTime.zero

  /// Creates a meter that shows silence.
  public init() {}

  /// The shown level as a fraction of the scale, from 0 to 1.
  public var levelPart: Double { 1 - levelDBFS / Self.minimumDBFS }
  /// The held peak as a fraction of the scale, from 0 to 1.
  public var heldPeakPart: Double { 1 - heldPeakDBFS / Self.minimumDBFS }

  /// Shows a new level.
  ///
  /// - Parameters:
  ///   - peakDBFS: The peak since the last call, in dBFS; minus infinity is silence.
  ///   - time: The time of the call, on any clock. A time before that of the previous call counts
  ///     as the time of the previous call.
  public mutating func update(peakDBFS: Double, at time: MediaTime) {
    let peak = peakDBFS > Self.minimumDBFS ? min(0, peakDBFS) : Self.minimumDBFS
    let now = max(time, self.time ?? time)
    let elapsed = now.doubleValue - (self.time ?? now).doubleValue
    levelDBFS = max(peak, levelDBFS - elapsed * Self.fallPerSecond, Self.minimumDBFS)
    if levelDBFS >= heldPeakDBFS || now.doubleValue - heldTime.doubleValue > Self.holdSeconds {
      (heldPeakDBFS, heldTime) = (levelDBFS, now)
    }
    if peakDBFS >= Self.overloadDBFS { hasClipped = true }
    self.time = now
  }

  /// Removes the overload mark.
  public mutating func resetClipping() { hasClipped = false }
}
