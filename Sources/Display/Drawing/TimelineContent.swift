// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import OvercrankPlayback

/// The segments and markers of a composition, as a time line shows them.
struct TimelineContent: Hashable, Sendable {
  /// A part of the time line with one color and one label.
  struct Segment: Hashable, Sendable {
    /// A kind of segment, which decides the color.
    enum Kind: Hashable, Sendable {
      case normal, slow, fast, frozen, gap
    }
    let start: Rational
    let end: Rational
    let kind: Kind
    /// The speed as text, such as `1/8`, or the first and last speed of a ramp, such as `1..1/4`.
    let label: String
  }

  let duration: Rational
  let segments: [Segment]
  /// Composition times of markers.
  let markers: [Rational]

  init(_ composition: Composition) {
    duration = composition.duration.seconds
    markers = composition.markers.map(\.range.start.seconds)
    segments = composition.segments.map(Segment.init)
  }
}

extension TimelineContent.Segment {
  init(_ segment: TrackSegment) {
    (start, end) = (segment.target.start.seconds, segment.target.end.seconds)
    guard let mapping = segment.mapping else {
      (kind, label) = (.gap, "")
      return
    }
    guard mapping.motion != .hold else {
      (kind, label) = (.frozen, "0")
      return
    }
    let mean = (mapping.sourceEnd - mapping.sourceStart) / segment.target.duration
    kind = mean == .one ? .normal : mean < .one ? .slow : .fast
    if mapping.motion == .constant {
      label = (mapping.isReversed ? -mean : mean).speedText
    } else {
      let ends = [start, end].compactMap { try? mapping.speed(at: $0) }
      label = ends.map(\.speedText).joined(separator: "..")
    }
  }
}
