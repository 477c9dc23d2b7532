// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
public import OvercrankMediaCore

/// A position of a player, on three time axes.
public struct PlayerTime: Hashable, Sendable {
  /// A position in a source file.
  public struct Source: Hashable, Sendable {
    /// The path of the file.
    public let path: String
    /// The source time in seconds, exact.
    public let seconds: Rational
    /// The index of the frame on screen, from 0 in presentation order; nil without video.
    public let frameIndex: Int?
    /// The number of frames in the file.
    public let frameCount: Int
  }

  /// The composition time in seconds, exact.
  public let composition: Rational
  /// The position in the source; nil in a gap.
  public let source: Source?
  /// The capture time of the frame on screen.
  ///
  /// If the file stores capture times, this is the time on the driver's clock. Otherwise it is the
  /// time since the first frame, computed from the file's capture rate. Nil if the file has
  /// neither.
  public let capture: MediaTime?
  /// The speed of the segment at this position, in source seconds per composition second.
  ///
  /// Negative in a reversed segment, zero for a frozen frame, nil in a gap.
  public let segmentSpeed: Rational?
}

extension PlaybackTimeline {
  /// Returns a position on all time axes.
  func time(at position: TransportRun.Position) -> PlayerTime {
    let source = source(at: position.time, before: position.isBackward)
    let frame = frame(at: position.time, before: position.isBackward)
    return PlayerTime(
      composition: position.time,
      source: source.map { asset, seconds in
        let video = assets[asset].asset.videoTrack
        return PlayerTime.Source(
          path: assets[asset].asset.path, seconds: seconds, frameIndex: frame?.frame,
          frameCount: video?.frameCount ?? 0)
      },
      capture: frame.flatMap { assets[$0.asset].captureTime(ofFrame: $0.frame) },
      segmentSpeed: speed(at: position.time, before: position.isBackward))
  }
}

extension PlayerTime {
  /// The position as text for a screen, such as
  /// `frame 318/1200 · 1.325000 s · +21.0 ms since mark · 1/8`.
  ///
  /// The text states the source time, or the composition time in a gap. The time since the mark is
  /// measured on the capture clock if both frames have a capture time, and otherwise in source
  /// time.
  ///
  /// - Parameters:
  ///   - rate: The player's rate. The text states the speed at which the source plays: the product
  ///     of the rate and the segment's speed. Nil for a text without a speed.
  ///   - mark: A position to measure from; nil for none.
  ///   - isSynthesized: True if the frame on screen is a synthesized one, see
  ///     ``PlayerFrame/isSynthesized``. The frame number is then marked by `~`.
  /// - Returns: The text.
  public func text(
    rate: Rational? = nil, since mark: PlayerTime? = nil, isSynthesized: Bool = false
  ) -> String {
    var parts: [String] = []
    if let source, let index = source.frameIndex {
      parts.append("frame \(isSynthesized ? "~" : "")\(index)/\(source.frameCount)")
    }
    parts.append("\(Self.decimals(source?.seconds ?? composition, 6)) s")
    if let distance = mark.flatMap(distance) {
      let sign = distance < .zero ? "" : "+"
      parts.append("\(sign)\(Self.decimals(distance * 1_000, 1)) ms since mark")
    }
    if let rate { parts.append((rate * (segmentSpeed ?? 1)).speedText) }
    return parts.joined(separator: " · ")
  }

  /// Returns the seconds from `mark` to this position; nil if both have no common time axis.
  private func distance(since mark: PlayerTime) -> Rational? {
    guard let source, let other = mark.source, source.path == other.path else {
      return composition - mark.composition
    }
    if let capture, let start = mark.capture { return capture - start }
    return source.seconds - other.seconds
  }

  /// Returns a number with a fixed number of decimals.
  private static func decimals(_ number: Rational, _ count: Int) -> String {
    var scale: Int128 = 1
    for _ in 0..<count { scale *= 10 }
    guard let units = try? (number * Rational(scale)).rounded(.halfAwayFromZero) else {
      return number.displayText
    }
    return Rational.decimals(units, count: count)
  }
}

extension Rational {
  /// A speed as text: a fraction such as `1/8` if it is short, and otherwise two decimals.
  package var speedText: String {
    guard isValid else { return "?" }
    if denominator == 1 { return "\(numerator)" }
    if denominator <= 99, numerator.magnitude <= 99 { return description }
    guard let units = try? (self * 100).rounded(.halfAwayFromZero) else { return description }
    return Self.decimals(units, count: 2)
  }
}
