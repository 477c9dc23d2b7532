// SPDX-License-Identifier: Apache-2.0

package import OvercrankAssets
package import OvercrankMediaCore

/// Creates the text lines that are drawn into the frames of one movie.
package struct BurnInText: Sendable {
  /// A captured frame of the movie, or an instant between two captured frames.
  package struct Position: Hashable, Sendable {
    /// The index of the frame before the instant, in playback order.
    package let index: Int
    /// The index of the frame after the instant; for a captured frame, the same as `index`.
    package let next: Int
    /// The position of the instant between the two frames, from 0 to 1; nil for a captured frame.
    package let share: Double?

    /// Creates the position of a captured frame, or of an instant between two frames.
    package init(_ index: Int, next: Int? = nil, share: Double? = nil) {
      self.index = index
      self.next = next ?? index
      self.share = share
    }
  }

  private let items: [BurnIn.Item]
  /// The capture time of each frame in seconds, since the first frame of its recording.
  private let times: [Rational]
  /// The index of the recording of each frame; nil for a frame of unknown origin.
  private let recordings: [Int?]
  /// The capture time of the mark in seconds, and the index of its recording.
  private let mark: (time: Rational, recording: Int?)

  /// Reads the capture times of a movie.
  ///
  /// Capture times count from the first frame, or from the first of another recording. The time of
  /// frames of unknown origin is zero.
  ///
  /// - Parameters:
  ///   - items: The lines.
  ///   - asset: The movie.
  ///   - mark: The time of the mark in the movie; nil for its start.
  ///   - clock: The capture times; nil for those that the file states, or its own times.
  package init(
    _ items: [BurnIn.Item], of asset: Asset, mark: MediaTime?, clock: CaptureClock? = nil
  ) {
    self.items = items
    guard
      let clock = clock ?? (try? asset.captureClock()) ?? (try? asset.captureClock(.file))
    else {
      (times, recordings, self.mark) = ([], [], (.zero, nil))
      return
    }
    var starts: [Int: Rational] = [:]
    var times: [Rational] = []
    var recordings: [Int?] = []
    for segment in clock.map.segments {
      for index in segment.frames {
        let time = clock.seconds(ofFrame: index) ?? .zero
        let start = segment.recording.map { recording -> Rational in
          let start = starts[recording] ?? time
          starts[recording] = start
          return start
        }
        times.append(time - (start ?? .zero))
        recordings.append(segment.recording)
      }
    }
    (self.times, self.recordings) = (times, recordings)
    let instant = mark ?? .zero
    let index = asset.videoTrack?.frames.index(at: instant)
    let recording = index.flatMap { recordings.indices.contains($0) ? recordings[$0] : nil }
    let time = clock.seconds(at: instant) ?? .zero
    self.mark = (time - (recording.flatMap { starts[$0] } ?? .zero), recording)
  }

  /// Returns the text lines of an output frame.
  ///
  /// The values for a synthesized frame are interpolated at its instant, and begin with `~`.
  ///
  /// - Throws: `MediaError` for a number that cannot be represented.
  package func lines(at position: Position, speed: String) throws -> [String] {
    let time = time(at: position)
    let sign = position.share == nil ? "" : "~"
    return try items.map { item in
      switch item {
      case .time: try sign + Self.text(time) + " s"
      case .frame: try "frame " + sign + frameText(position)
      case .speed: "speed " + speed
      case .mark: try "mark " + markText(position, time, sign)
      }
    }
  }

  /// The time since the mark; times of different recordings have no difference.
  private func markText(_ position: Position, _ time: Rational, _ sign: String) throws -> String {
    guard recordings.indices.contains(position.index), recordings[position.index] == mark.recording
    else { return "-" }
    return try sign + Self.text(time - mark.time, isSigned: true) + " s"
  }

  private func time(at position: Position) -> Rational {
    guard times.indices.contains(position.index) else { return .zero }
    let time = times[position.index]
    guard let share = position.share, times.indices.contains(position.next) else { return time }
    return time + (times[position.next] - time) * Self.rational(share)
  }

  private func frameText(_ position: Position) throws -> String {
    guard let share = position.share else { return "\(position.index)" }
    let distance = Rational(Int64(position.next - position.index))
    let number = Rational(Int64(position.index)) + distance * Self.rational(share)
    return try Self.text(number, digits: 2)
  }

  private static func rational(_ share: Double) -> Rational {
    Rational(Int128((min(max(share, 0), 1) * 0x1p40).rounded()), over: 1 << 40)
  }

  /// Formats a speed: whole numbers and `1/n` exactly, other speeds with four digits.
  package static func speedText(_ speed: Rational) throws -> String {
    if speed.denominator == 1 { return "\(speed.numerator)" }
    return speed.numerator.magnitude == 1 ? speed.description : try text(speed, digits: 4)
  }

  /// Formats a number with a fixed number of digits after the decimal point.
  static func text(
    _ number: Rational, digits: Int = 6, isSigned: Bool = false
  ) throws -> String {
    let unit = (0..<digits).reduce(1) { one, _ in one * 10 }
    let units = Int64(clamping: try (number * Rational(Int64(unit))).rounded(.halfAwayFromZero))
    return (isSigned && units >= 0 ? "+" : "") + Rational.decimals(units, count: digits)
  }
}
