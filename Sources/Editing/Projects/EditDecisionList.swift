// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A reader of CMX 3600 edit decision lists, with speed changes from M2 lines.
///
/// A list gives its times as timecodes but does not state the frame rate. The timecodes of a movie
/// count from its own first timecode, which is not known here. If the timecodes in the list fit
/// inside the movie, they are taken to count from zero. Otherwise the first frame is assumed to
/// have the lowest timecode that the list uses of this movie, or the whole hour before it.
struct EditDecisionList {
  private struct Event {
    var number: Substring
    var reel: Substring
    var isVideo: Bool
    var isAudio: Bool
    var isCut: Bool
    var codes: [TimeCode]
    var name: String?
    var file: String?
    /// The M2 line of the event: the speed in source frames per second, and the timecode of the
    /// first source frame; nil without such a line.
    var motion: (framesPerSecond: Double, start: TimeCode?)?
  }

  private struct TimeCode {
    var hours: Int64
    var minutes: Int64
    var seconds: Int64
    var frames: Int64
    var isDrop: Bool

    init?(_ text: Substring) {
      let parts = text.split(whereSeparator: { ":;.".contains($0) }).map { Int64($0) }
      guard text.utf8.count <= 12, parts.count == 4,
        text.allSatisfy({ "0123456789:;.".contains($0) }),
        let hours = parts[0], let minutes = parts[1], let seconds = parts[2],
        let frames = parts[3], hours < 100, minutes < 60, seconds < 60, frames < 1_000
      else { return nil }
      (self.hours, self.minutes, self.seconds, self.frames) = (hours, minutes, seconds, frames)
      isDrop = text.contains(";")
    }

    /// Returns the frame number of this timecode.
    func count(per nominal: Int64, dropsAll: Bool) -> Int64 {
      let whole = ((hours * 60 + minutes) * 60 + seconds) * nominal + frames
      guard isDrop || dropsAll, nominal % 30 == 0 else { return whole }
      // Drop-frame timecode at 30 fps skips two frame numbers each minute, except every tenth
      // minute, and twice as many at 60 fps. The skipped numbers are subtracted.
      let minute = hours * 60 + minutes
      return whole - nominal / 15 * (minute - minute / 10)
    }
  }

  private var media: ProjectMedia
  private var notes: [String] = []
  private let findRate: (String) throws(MediaError) -> FrameRate?

  init(
    _ find: @escaping (String) throws(MediaError) -> MediaSource,
    rate: @escaping (String) throws(MediaError) -> FrameRate?
  ) {
    media = ProjectMedia(find)
    findRate = rate
  }

  var warnings: [String] { notes + media.warnings }

  static func isOne(_ text: String) -> Bool {
    text.split(whereSeparator: \.isNewline).prefix(100).contains {
      $0.hasPrefix("TITLE:") || event($0) != nil
    }
  }

  static func title(_ text: String) -> String? {
    text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("TITLE:") }
      .map { Self.trimmed($0.dropFirst(6)) }
  }

  mutating func composition(of text: String) throws(MediaError) -> Composition {
    var (events, isDrop) = try events(text)
    events.removeAll { $0.reel == "BL" || (!$0.isVideo && !$0.isAudio) }
    guard let first = events.first else {
      throw MediaError.invalidProject("no event of the list has video or audio")
    }
    let rate = try rate(of: first, events)
    let nominal = try Int64(rate.framesPerSecond.rounded(.towardPositiveInfinity))
    let drops = isDrop && nominal % 30 == 0 && rate.framesPerSecond != Rational(nominal)
    func seconds(_ frames: Int64) -> Rational {
      Rational(frames) / rate.framesPerSecond
    }
    func count(_ code: TimeCode) -> Int64 { code.count(per: nominal, dropsAll: drops) }
    let begin = events.map { count($0.codes[2]) }.min() ?? 0
    let starts = try starts(of: events, count: count, seconds: seconds)
    var layers: [MediaType: [ProjectContent]] = [:]
    for event in events {
      let location = "event \(event.number)"
      let path = Self.path(event)
      let record = (count(event.codes[2]) - begin, count(event.codes[3]) - begin)
      // A transition consists of two events. The one for the outgoing clip has zero length and is
      // not needed.
      if record.0 == record.1 { continue }
      guard record.0 < record.1 else {
        throw MediaError.invalidProject("\(location) ends before it begins")
      }
      if !event.isCut { notes.append("the transition at \(location) is played as a cut") }
      let offset = starts[path] ?? 0
      let from = count(event.codes[0]) - offset
      let length = seconds(record.1 - record.0)
      var start = seconds(from)
      var end: Rational
      if let motion = event.motion {
        guard let pace = ProjectTime.nearest(motion.framesPerSecond) else {
          throw MediaError.invalidProject("\(location) has an invalid speed")
        }
        let played = length * (pace / rate.framesPerSecond)
        if played < .zero {
          // Reverse playback starts at the end of the frame that the M2 line names, if this frame
          // is after the event's source start. Otherwise reverse playback covers the same range as
          // forward playback from the source start would, and ends at the source start.
          let named = motion.start.map { count($0) - offset } ?? from
          start = named > from ? seconds(named + 1) : start - played
        }
        end = start + played
      } else {
        let other = count(event.codes[1]) - count(event.codes[0])
        // The source and record durations should be equal. In drop-frame timecode they often differ
        // by one frame, because numbers are skipped, so a small difference is allowed.
        guard abs(other - (record.1 - record.0)) <= 2 else {
          throw MediaError.invalidProject(
            "\(location) plays \(other) source frames in \(record.1 - record.0) frames without an "
              + "M2 line")
        }
        end = start + length
      }
      let shown = try ProjectContent(
        ProjectClip(path: path, location: location),
        along: [.init(start: .zero, end: length, from: start, to: end)])
      var layer = try ProjectContent(emptyFor: seconds(record.0))
      try layer.append(shown)
      if event.isVideo { layers[.video, default: []].append(layer) }
      if event.isAudio { layers[.audio, default: []].append(layer) }
    }
    var composition = Composition()
    for mediaType in MediaType.allCases {
      guard let layers = layers[mediaType] else { continue }
      composition.tracks.append(try media.track(.inSequence(layers), mediaType))
    }
    return composition
  }

  /// Returns the timecode of each movie's first frame, as a frame number.
  private mutating func starts(
    of events: [Event], count: (TimeCode) -> Int64, seconds: (Int64) -> Rational
  ) throws(MediaError) -> [String: Int64] {
    var starts: [String: Int64] = [:]
    let movies = Dictionary(grouping: events, by: Self.path).sorted { $0.key < $1.key }
    for (path, events) in movies {
      let last = events.map { count($0.codes[1]) }.max() ?? 0
      let length = try media.source(path).duration.seconds
      guard seconds(last) > length + Rational(1, over: 24) else { continue }
      let hour = count(TimeCode("01:00:00:00") ?? events[0].codes[0])
      let low = events.map { count($0.codes[0]) }.min() ?? 0
      // The timecode of a recording often starts at a whole hour. The whole hour before the lowest
      // timecode is used if all timecodes then fit inside the movie.
      let start =
        hour > 0 && seconds(last - low / hour * hour) <= length ? low / hour * hour : low
      starts[path] = start
      notes.append(
        "the first frame of \(path) is assumed to have the timecode of "
          + "\(start == low ? "its first event" : "the whole hour")")
    }
    return starts
  }

  private func rate(of first: Event, _ events: [Event]) throws(MediaError) -> FrameRate {
    let most = events.flatMap(\.codes).map(\.frames).max() ?? 0
    guard let found = try findRate(Self.path(first)),
      found.framesPerSecond > Rational(most), found.framesPerSecond <= Rational(120)
    else {
      throw MediaError(
        .frameRateNeeded,
        "the list does not state the frame rate of its timecodes")
    }
    return found
  }

  // MARK: Lines

  private mutating func events(_ text: String) throws(MediaError) -> ([Event], isDrop: Bool) {
    var events: [Event] = []
    var isDrop = false
    for line in text.split(whereSeparator: \.isNewline) {
      if let event = Self.event(line) {
        events.append(event)
        continue
      }
      let fields = line.split(whereSeparator: \.isWhitespace)
      if fields.first == "FCM:" { isDrop = fields.dropFirst().first == "DROP" }
      guard !events.isEmpty else { continue }
      if fields.first == "M2" {
        let numbers = fields.dropFirst().reversed()
        guard let code = numbers.first.flatMap(TimeCode.init),
          let pace = numbers.dropFirst().first.flatMap({ Double($0) }), abs(pace) < 100_000
        else {
          throw MediaError.invalidProject(
            "the M2 line of event \(events.last?.number ?? "") is damaged")
        }
        // The M2 line names the reel that it applies to, because a dissolve has two M2 lines, one
        // for each clip.
        let index = events.lastIndex { $0.reel == fields.dropFirst().first } ?? events.count - 1
        events[index].motion = (pace, code)
      }
      for (key, isFile) in [
        ("FROM CLIP NAME:", false), ("TO CLIP NAME:", false), ("SOURCE FILE:", true),
        ("FROM FILE:", true), ("FROM CLIP:", true), ("MEDIA FILE:", true),
      ] {
        guard let found = line.firstRange(of: key) else { continue }
        let value = Self.trimmed(line[found.upperBound...])
        if isFile {
          events[events.count - 1].file = value
        } else if key.hasPrefix("TO") || events[events.count - 1].isCut {
          events[events.count - 1].name = value
        }
      }
    }
    return (events, isDrop)
  }

  /// Parses an event line: number, reel, tracks, edit type, optional transition length, timecodes.
  private static func event(_ line: Substring) -> Event? {
    let fields = line.split(whereSeparator: \.isWhitespace)
    guard fields.count >= 8, fields[0].allSatisfy(\.isNumber) else { return nil }
    // Text after the four timecodes is ignored, because programs add remarks there.
    let location = fields.indices.first { $0 >= 4 && TimeCode(fields[$0]) != nil }
    guard let location, fields.count >= location + 4 else { return nil }
    let codes = fields[location..<location + 4].compactMap(TimeCode.init)
    let heads = fields[2..<location]
    guard codes.count == 4, let kind = heads.dropFirst().first ?? heads.last,
      let tracks = heads.first
    else { return nil }
    let isBoth = tracks == "B"
    return Event(
      number: fields[0], reel: fields[1], isVideo: isBoth || tracks.contains("V"),
      isAudio: isBoth || tracks.contains("A"), isCut: kind == "C", codes: codes)
  }

  /// Returns the movie of an event: the file that a comment names, or else the clip name, or else
  /// the reel name.
  private static func path(_ event: Event) -> String {
    let found = event.file ?? event.name ?? String(event.reel)
    // A Windows path does not exist on this system, so only the file name is kept.
    guard found.contains("\\") else { return OpenTimelineURL.path(of: found) }
    return found.split(separator: "\\").last.map(String.init) ?? found
  }

  private static func trimmed(_ text: Substring) -> String {
    let front = text.drop(while: \.isWhitespace)
    let count = front.reversed().prefix(while: \.isWhitespace).count
    return String(front.dropLast(count))
  }
}
