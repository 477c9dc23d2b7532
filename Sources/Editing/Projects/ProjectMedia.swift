// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Converts project content to tracks, and looks up the media of visible clips.
struct ProjectMedia {
  private let find: (String) throws(MediaError) -> MediaSource
  private var sources: [String: MediaSource] = [:]
  /// Descriptions of content that had to be changed, one sentence each.
  var warnings: [String] = []

  init(_ find: @escaping (String) throws(MediaError) -> MediaSource) { self.find = find }

  /// Converts content to a track.
  ///
  /// - Throws: `MediaError` with `.invalidProject` for clips outside their media or times that do
  ///   not fit; errors of the media lookup.
  mutating func track(
    _ content: ProjectContent, _ mediaType: MediaType
  ) throws(MediaError) -> CompositionTrack {
    var segments: [TrackSegment] = []
    for piece in content.pieces {
      let target = try TimeRange(
        start: ProjectTime.rounded(piece.start), end: ProjectTime.rounded(piece.end))
      // The boundaries of a very short piece may round to the same nanosecond. Such a piece is
      // skipped, because a segment must not be empty.
      if target.isEmpty { continue }
      if let shown = piece.shown {
        segments.append(try segment(shown, target))
      } else {
        segments.append(try TrackSegment(empty: target))
      }
    }
    return try CompositionTrack(mediaType, segments: segments)
  }

  /// Converts the video or audio of a project to a track of a composition.
  ///
  /// A project without audio has no audio track, but it always has a video track.
  mutating func add(
    _ content: ProjectContent, _ mediaType: MediaType, to composition: inout Composition
  ) throws(MediaError) {
    guard content.showsAnything || mediaType == .video else { return }
    composition.tracks.append(try track(content, mediaType))
  }

  private mutating func segment(
    _ shown: ProjectContent.Shown, _ target: TimeRange
  ) throws(MediaError) -> TrackSegment {
    let source = try source(shown.clip.path)
    let mapping: PlaybackMapping
    if let exact = shown.clip.exact {
      mapping = try Self.mapping(exact, shown, target)
    } else {
      mapping = try line(shown, of: source, target)
    }
    guard mapping.sourceStart >= .zero, mapping.sourceEnd <= source.duration.seconds else {
      throw MediaError.invalidProject(
        "\(shown.clip.location) plays \(mapping.sourceStart.displayText) s to "
          + "\(mapping.sourceEnd.displayText) s of \(source.path), which lasts "
          + "\(source.duration.displayText) s")
    }
    return TrackSegment(unchecked: source, mapping)
  }

  /// Returns the part of an exact mapping that a piece shows.
  private static func mapping(
    _ exact: PlaybackMapping, _ shown: ProjectContent.Shown, _ target: TimeRange
  ) throws(MediaError) -> PlaybackMapping {
    let (low, high) = (min(shown.from, shown.to), max(shown.from, shown.to))
    guard low < high else {
      return try PlaybackMapping(
        holding: ProjectTime.rounded(exact.sourceSeconds(of: low)), isBefore: exact.isReversed,
        target: target)
    }
    var part = exact
    if low > part.target.start.seconds {
      part = try part.split(at: ProjectTime.rounded(low)).after
    }
    if high < part.target.end.seconds {
      part = try part.split(at: ProjectTime.rounded(high)).before
    }
    return try (shown.from > shown.to ? part.reversed() : part).filling(target)
  }

  /// Returns a mapping at constant speed, or one that freezes an instant.
  private mutating func line(
    _ shown: ProjectContent.Shown, of source: MediaSource, _ target: TimeRange
  ) throws(MediaError) -> PlaybackMapping {
    // A still image has one frame, so it is frozen at time zero.
    if Self.isStill(source.path) { return try PlaybackMapping(holding: .zero, target: target) }
    let end = source.duration.seconds
    let (low, high) = try (
      inside(min(shown.from, shown.to), end), inside(max(shown.from, shown.to), end)
    )
    if low != min(shown.from, shown.to) || high != max(shown.from, shown.to) {
      warnings.append(
        "\(shown.clip.location) extends past an end of \(source.path) and plays slightly slower"
      )
    }
    if shown.from == shown.to {
      return try PlaybackMapping(
        holding: ProjectTime.rounded(low), isBefore: low == end, target: target)
    }
    guard low < high else {
      throw MediaError.invalidProject("\(shown.clip.location) uses no part of \(source.path)")
    }
    // This code does not check whether the source range lies inside the media. The caller checks
    // that, and its error message names both ranges.
    let line = try TimeMapping(
      source: TimeRange(start: ProjectTime.rounded(low), end: ProjectTime.rounded(high)),
      target: target)
    return shown.from > shown.to ? PlaybackMapping(reversing: line) : PlaybackMapping(line)
  }

  /// Returns true if the extension of a file is that of a still image, and false otherwise.
  private static func isStill(_ path: String) -> Bool {
    let suffix = path.split(separator: ".").last?.lowercased() ?? ""
    return [
      "png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp", "exr", "dpx", "svg", "tga", "jp2", "jxl",
      "ppm", "pgm", "sgi", "pcx",
    ].contains(suffix)
  }

  /// Clamps a media time to the media if it lies at most 1/24 s outside; throws if it lies farther
  /// outside.
  ///
  /// Programs that round times to frames, or use floating point, write such times at the ends of
  /// media.
  private func inside(_ time: Rational, _ end: Rational) throws(MediaError) -> Rational {
    let slack = Rational(1, over: 24)
    if time < .zero { return time + slack >= .zero ? .zero : time }
    if time > end { return time - slack <= end ? end : time }
    return time
  }

  /// Returns the media of a movie; each movie is looked up once.
  mutating func source(_ path: String) throws(MediaError) -> MediaSource {
    if let known = sources[path] { return known }
    let found = try find(path)
    sources[path] = found
    return found
  }
}

/// Conversions of times in project files, which are floating point or fractions.
enum ProjectTime {
  /// Converts seconds to a composition time: exact if possible, else the nearest nanosecond.
  static func rounded(_ seconds: Rational) throws(MediaError) -> MediaTime {
    if let time = try? MediaTime(seconds) { return time }
    let units = try (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    guard let value = Int64(exactly: units) else {
      throw MediaError(.overflow, "the time \(seconds.doubleValue) s does not fit")
    }
    return MediaTime(nanoseconds: value)
  }

  /// Converts a frame or sample rate to a fraction.
  ///
  /// A rate that differs by less than the tolerance from n·1000/1001, such as 29.97, becomes exactly
  /// that.
  static func rate(_ number: Double?, tolerance: Double = 0.002) -> Rational? {
    guard let number, number > 0, number < 1e10 else { return nil }
    let whole = number.rounded(.up)
    let isTelevision = number != whole && abs(number - whole * 1000 / 1001) < tolerance
    return isTelevision ? Rational(Int128(whole) * 1000, over: 1001) : nearest(number)
  }

  /// Returns a simple fraction that differs from a number by a relative error of at most 1e-9; nil
  /// for numbers of 1e15 and above.
  static func nearest(_ number: Double) -> Rational? {
    guard number.isFinite, abs(number) < 1e15 else { return nil }
    if number == number.rounded() { return Rational(Int64(number)) }
    // The convergents of the continued fraction are tried in turn. Each is closer than every
    // fraction with a smaller denominator.
    var (rest, last, current) = (number, (Int128(0), Int128(1)), (Int128(1), Int128(0)))
    for _ in 0..<40 {
      let whole = rest.rounded(.down)
      guard whole.magnitude < 1e15 else { break }
      let next = (
        Int128(whole) * current.0 + last.0, Int128(whole) * current.1 + last.1
      )
      // The next step multiplies the numerator and the denominator of this convergent by a term of
      // at most 50 bits. If both are below 2^60, the products fit in 128 bits.
      guard next.1 < 1 << 60, next.0.magnitude < 1 << 60 else { break }
      (last, current) = (current, next)
      if abs(Double(current.0) / Double(current.1) - number) <= 1e-9 * max(1, abs(number)) { break }
      rest = 1 / (rest - whole)
      guard rest.isFinite else { break }
    }
    return Rational(current.0, over: current.1).ifValid
  }
}
