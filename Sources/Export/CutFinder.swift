// SPDX-License-Identifier: Apache-2.0
import Assets
import MediaTiming

/// Tells where a track can be cut without re-encoding it.
///
/// A range may start where a picture needs none before it (an IDR picture in H.264 and HEVC), and
/// end where no picture that is kept needs a later one, which are stored before those that they
/// help to predict.
struct CutFinder {
  private let table: FrameTable
  private let path: String
  /// For each frame the last place in the order of decoding up to it, and the first from it on.
  private let lastDecoded: [Int]
  private let firstDecoded: [Int]

  init(_ table: FrameTable, path: String) {
    self.table = table
    self.path = path
    var last = -1
    lastDecoded = table.entries.map {
      last = max(last, $0.decodeIndex)
      return last
    }
    var first = Int.max
    var reversed: [Int] = []
    reversed.reserveCapacity(table.entries.count)
    for entry in table.entries.reversed() {
      first = min(first, entry.decodeIndex)
      reversed.append(first)
    }
    firstDecoded = reversed.reversed()
  }

  /// What may be done where a run cannot simply be cut.
  struct Means {
    /// How many other frames may be copied along and hidden.
    var hidden: Int
    /// Whether frames may be encoded.
    var renders: Bool
    /// Why they may not, where that was asked for.
    var reason: String?
  }

  /// How the frames of a run get into the file, by their numbers.
  struct Selection {
    /// Frames to encode, before those that are copied.
    var head: Range<Int>
    /// Frames to copy, in the order in which they are written.
    ///
    /// Those outside the run are hidden: others need them.
    var copied: [Int] = []
    /// Frames to encode, after those that are copied.
    var tail: Range<Int>
  }

  /// The frames to write for those of a run.
  ///
  /// - Parameters:
  ///   - run: What is played.
  ///   - frames: The frames that it shows.
  ///   - means: What may be done at its ends.
  ///   - isLast: Whether nothing follows, so that what is hidden after it would be seen last.
  /// - Returns: The frames.
  /// - Throws: `ExportError` with `.cutNotOnKeyFrame`, which names the nearest free cuts, or
  ///   `.unsupportedSource` for what plays backwards and needs other pictures.
  func select(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, by means: Means, isLast: Bool
  ) throws(ExportError) -> Selection {
    let (first, end) = (frames.lowerBound, frames.upperBound + 1)
    guard !run.isReversed else {
      try checkReverse(run, frames)
      return Selection(head: first..<first, copied: frames.reversed(), tail: end..<end)
    }
    var start = first
    var key = first
    if !isFreeStart(first) {
      if let found = (0..<first).last(where: isFreeStart), let plain = copies(found, first..<end),
        hiddenCount(plain, first..<end, atEnd: false) <= means.hidden
      {
        key = found
      } else {
        guard means.renders else { throw refusal(run, frames, isStart: true, means) }
        start = (first + 1..<end).first(where: isFreeStart) ?? end
        key = start
      }
    }
    guard start < end else { return Selection(head: first..<end, tail: end..<end) }
    // At the very end a hidden frame would be the last that is seen, if only for a tick: not
    // where the end can be encoded instead.
    if let plain = copies(key, start..<end),
      isFreeEnd(end)
        || hiddenCount(plain, start..<end, atEnd: true) <= means.hidden
          && !(isLast && means.renders)
    {
      return Selection(head: first..<start, copied: plain, tail: end..<end)
    }
    guard means.renders else { throw refusal(run, frames, isStart: false, means) }
    guard let free = (start + 1..<end).last(where: isFreeEnd),
      let plain = copies(key, start..<free)
    else { return Selection(head: first..<end, tail: end..<end) }
    return Selection(head: first..<start, copied: plain, tail: free..<end)
  }

  /// The frames that a decoder must be given for a range of them, from a free start on, in order
  /// of decoding; nil where some are not to be had.
  private func copies(_ key: Int, _ frames: Range<Int>) -> [Int]? {
    let first = firstDecoded[key]
    guard let last = frames.map({ table.entries[$0].decodeIndex }).max() else { return nil }
    var copied: [Int] = []
    copied.reserveCapacity(max(0, last - first) + 1)
    // What is decoded in between is shown not much later than the last of them.
    for index in key..<table.entries.count {
      let place = table.entries[index].decodeIndex
      if place < first || place > last {
        if index >= frames.upperBound, firstDecoded[index] > last { break }
        continue
      }
      copied.append(index)
    }
    copied.sort { table.entries[$0].decodeIndex < table.entries[$1].decodeIndex }
    // A packet that is no frame of the table (dropped by an edit list) would be missing, unless
    // nothing needs it.
    let isWhole = copied.count == last - first + 1
    return isWhole || copied.count == frames.count && key == frames.lowerBound ? copied : nil
  }

  /// How many of the copied frames are not to be seen; before the run alone, or on both sides.
  private func hiddenCount(_ copied: [Int], _ frames: Range<Int>, atEnd: Bool) -> Int {
    copied.count { $0 < frames.lowerBound || atEnd && $0 >= frames.upperBound }
  }

  private func checkReverse(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>
  ) throws(ExportError) {
    guard frames.allSatisfy({ table.entries[$0].isIndependent }) else {
      throw ExportError(
        .unsupportedSource,
        "\(path) plays backwards from \(seconds(run.end)) to \(seconds(run.start)) s, and its "
          + "pictures need those before them",
        hint: "render it with --fps; pictures that stand alone (MJPEG, FFV1) can be copied so")
    }
  }

  private func isFreeStart(_ index: Int) -> Bool {
    // With nothing before it in the file, a track starts as it always did.
    table.entries[index].isIndependent || firstDecoded[index] == 0
  }

  /// Whether the frames before this one can do without it and those after it.
  private func isFreeEnd(_ index: Int) -> Bool {
    index <= 0 || index >= table.entries.count || lastDecoded[index - 1] < firstDecoded[index]
  }

  /// How many frames the source has.
  var frameCount: Int { table.entries.count }

  /// The packets of frames, as runs of neighbours in the order in which they are written.
  func copies(_ frames: [Int]) -> [ExportReport.Copy] {
    var copies: [ExportReport.Copy] = []
    for place in frames.lazy.map({ Int64(table.entries[$0].decodeIndex) }) {
      if let last = copies.last, last.firstPacket + last.packetCount == place {
        copies[copies.count - 1].packetCount += 1
      } else {
        copies.append(ExportReport.Copy(path: path, firstPacket: place, packetCount: 1))
      }
    }
    return copies
  }

  /// The times of the nearest free cuts at or before a frame, and after it: to start there, or to
  /// end what started at the frame `first`.
  func freeCuts(
    isStart: Bool, around place: Int, first: Int
  ) -> (before: MediaTime?, after: MediaTime?) {
    let count = table.entries.count
    func isFree(_ index: Int) -> Bool {
      isStart ? index < count && isFreeStart(index) : index > first && isFreeEnd(index)
    }
    let before = (0...place).reversed().first(where: isFree)
    let after = ((place + 1)..<max(place + 1, count + 1)).first(where: isFree)
    func time(_ index: Int?) -> MediaTime? {
      index.flatMap { try? table.time(ofFrame: Int64($0)) }
    }
    return (time(before), time(after))
  }

  /// Why a cut is not free, and where the nearest ones are that are.
  private func refusal(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, isStart: Bool, _ means: Means
  ) -> ExportError {
    let cuts = freeCuts(
      isStart: isStart, around: isStart ? frames.lowerBound : frames.upperBound + 1,
      first: frames.lowerBound)
    let free = [cuts.before, cuts.after].compactMap { $0.map { "\($0.secondsText) s" } }
    let why =
      isStart
      ? "no picture can be decoded by itself" : "pictures need later ones that would be missing"
    return ExportError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(isStart ? "starts" : "ends") at "
        + "\(seconds(isStart ? run.start : run.end)) s, where \(why)"
        + (means.reason.map { "; \($0)" } ?? ""),
      hint: free.isEmpty
        ? "render it with --fps"
        : "cut at \(free.joined(separator: " or ")), or render it with --fps")
  }
}
