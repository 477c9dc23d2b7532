// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
package import OvercrankMovieFormat

/// The time map that a movie stores.
package enum StoredTimeMap: Sendable {
  /// The map of a part of the frame.
  package struct Pane: Sendable {
    /// The part; nil for the whole frame.
    package let box: TimeMapBox.Pane?
    /// The map.
    package let map: TimeMap
  }

  /// The movie has none.
  case none
  /// The movie is a recording, whose ledger is its map.
  case recording
  /// The maps; never empty.
  case panes([Pane])
  /// The movie has one that cannot be used, for a reason that completes "FILE …".
  case refused(String)
}

extension Asset {
  /// The time map of the movie: when and in which recording each frame was captured.
  ///
  /// Movies that this library exports have one, and the ledger of a recording is one. It is read from
  /// the file and compared with the movie. Nil if the movie has none, or if another program has changed
  /// the movie since.
  public var timeMap: TimeMap? {
    switch storedTimeMap() {
    case .panes(let panes): panes.first?.map
    case .none, .recording: recordingMap()?.map
    case .refused: nil
    }
  }

  /// Why the time map in the file is not used; nil if it is used, or if there is none.
  ///
  /// The text completes a sentence that begins with the name of the file.
  public var timeMapRefusal: String? {
    if case .refused(let reason) = storedTimeMap() { reason } else { nil }
  }

  /// Reads the time map from the file.
  ///
  /// The box counts more than the note in the comment, which other programs keep.
  package func storedTimeMap() -> StoredTimeMap {
    guard let frames = videoTrack?.frames else { return .none }
    let note = (metadata[TimeMapNote.key] ?? metadata[TimeMapNote.key.uppercased()])
      .flatMap(TimeMapNote.init(comment:))
    let box = storedBox()
    guard box != nil || note != nil else { return .none }
    let digest = sampleDigest()
    if let box {
      guard box.digest == digest else { return .refused(Self.changed) }
      let panes = box.entries.compactMap { entry in
        TimeMap(code: entry.code, frameCount: frames.entries.count).map {
          StoredTimeMap.Pane(box: entry.pane, map: $0)
        }
      }
      return panes.count == box.entries.count ? .panes(panes) : .refused("has a damaged time map")
    }
    guard let note else { return .none }
    guard note.digest == digest else { return .refused(Self.changed) }
    if recording != nil { return .recording }
    guard let map = note.map(ticks: frames.entries.map(\.ticks), timescale: frames.timescale)
    else {
      return .refused(
        "has lost its time map: another program copied it, and left out what it did not know")
    }
    return .panes([StoredTimeMap.Pane(box: nil, map: map)])
  }

  private static let changed =
    "has a time map of other frames or times: another program changed it since it was made"

  private func storedBox() -> TimeMapBox? {
    guard container == "mov", let file = try? MovieBoxes(opening: path, forWriting: false) else {
      return nil
    }
    return TimeMapBox(from: file)
  }

  /// The digest of the video track; nil if it cannot be computed.
  func sampleDigest() -> SampleDigest? {
    guard container == "mov", let track = videoTrack,
      let file = try? MovieBoxes(opening: path, forWriting: false)
    else { return nil }
    return SampleDigest(
      ofTrack: track.format.index, in: file, ticks: track.frames.entries.map(\.ticks),
      timescale: track.frames.timescale)
  }

  /// The identity of the movie as a recording, from its frames alone.
  private func identity(_ frames: FrameTable) -> UInt64 {
    var digest =
      sampleDigest()
      ?? SampleDigest(ticks: frames.entries.map(\.ticks), timescale: frames.timescale)
    if let recording { digest.add(UInt64(bitPattern: recording.firstCaptureTime.wholeNanoseconds)) }
    return digest.rawValue
  }

  /// The map of a recording, from its ledger, or computed from its first frame and its gaps; nil for
  /// another movie.
  func recordingMap() -> (map: TimeMap, hasLedger: Bool)? {
    guard let frames = videoTrack?.frames, let recording else { return nil }
    let missing = recording.missing(frameCount: frames.entries.count)
    let ticks: (timescale: Int32, ticks: [Int64])
    let records = takenRecords(frameCount: frames.entries.count)
    if let records {
      ticks = (1_000_000, records.map(\.microseconds))
    } else {
      let start = recording.firstCaptureTime
      ticks = Self.sums(frames.entries.map { MediaTime($0.ticks, over: frames.timescale) }, start)
    }
    var map = TimeMap()
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity(frames), basis: .driver, timescale: ticks.timescale,
        knowsLosses: missing != nil))
    map.reserveCapacity(frames.entries.count)
    map.beginSegment(recording: number, timeScale: .one, isContinued: false)
    var lost: Int64 = 0
    for index in frames.entries.indices {
      lost &+= missing?[index] ?? 0
      map.append(TimeMap.Frame(index: Int64(index), lost: lost, ticks: ticks.ticks[index]))
    }
    return (map, hasLedger: records != nil)
  }

  /// Returns times after a start as ticks, exactly where a timescale of 32 bits allows it.
  private static func sums(
    _ times: [MediaTime], _ start: MediaTime
  ) -> (timescale: Int32, ticks: [Int64]) {
    let common = times.first.map {
      greatestCommonDivisor(UInt128($0.timescale), UInt128(1_000_000))
    }
    let exact = times.first.flatMap { first in
      common.flatMap { Int32(exactly: Int128(first.timescale) / Int128($0) * 1_000_000) }
    }
    let timescale = exact ?? 1_000_000_000
    let ticks = times.map { time -> Int64 in
      let sum = (start + time) * Rational(Int64(timescale))
      return (try? sum.rounded(.halfAwayFromZero)).map { Int64(clamping: $0) } ?? 0
    }
    return (timescale, ticks)
  }

  /// The map of a movie whose times follow from those of the file by one factor.
  func fileMap(_ basis: TimeMap.Recording.Basis, timeScale: Rational) -> TimeMap {
    var map = TimeMap()
    guard let frames = videoTrack?.frames else { return map }
    // The factor becomes part of the timescale, so that the times stay exact.
    let units = Rational(Int64(frames.timescale)) / timeScale
    let exact = Int32(exactly: units.numerator)
    let timescale = exact ?? 1_000_000_000
    let factor = timeScale * Rational(Int128(timescale), over: Int128(frames.timescale))
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity(frames), basis: basis, timescale: timescale, knowsLosses: false))
    map.reserveCapacity(frames.entries.count)
    map.beginSegment(recording: number, timeScale: timeScale, isContinued: false)
    for (index, entry) in frames.entries.enumerated() {
      let ticks = Rational(entry.ticks) * factor
      map.append(
        TimeMap.Frame(
          index: Int64(index),
          ticks: (try? ticks.rounded(.halfAwayFromZero)).map { Int64(clamping: $0) } ?? 0))
    }
    return map
  }

  /// The map of a movie whose frames were captured at a rate, whatever their times.
  func indexMap(_ rate: FrameRate) -> TimeMap {
    var map = TimeMap()
    guard let frames = videoTrack?.frames else { return map }
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity(frames), basis: .statedRate, timescale: rate.numerator,
        knowsLosses: false))
    map.beginSegment(recording: number, timeScale: nil, isContinued: false)
    for index in frames.entries.indices {
      map.append(
        TimeMap.Frame(index: Int64(index), ticks: Int64(index) &* Int64(rate.denominator)))
    }
    return map
  }
}
