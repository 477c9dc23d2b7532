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

  /// Packets of a run, and which of them are there only to be decoded.
  struct Selection {
    /// Places in the order of decoding, ascending; of what plays backwards, descending.
    var decodeIndices: [Int] = []
    /// Frames that others need, which are shown before or after the run's own.
    var before: [Int] = []
    var after: [Int] = []
  }

  /// The packets that show the frames of a run.
  ///
  /// - Parameters:
  ///   - run: What is played.
  ///   - frames: The frames that it shows.
  ///   - most: How many other frames may be copied along and hidden.
  ///   - isLast: Whether nothing follows, so that nothing can be hidden after it.
  /// - Returns: The packets.
  /// - Throws: `ExportError` with `.cutNotOnKeyFrame`, which names the nearest free cuts, or
  ///   `.unsupportedSource` for what plays backwards and needs other pictures.
  func select(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, hidingAtMost most: Int, isLast: Bool
  ) throws(ExportError) -> Selection {
    let own = frames.map { table.entries[$0].decodeIndex }
    if !run.isReversed, most > 0, let hiding = hidden(frames, own), !isLast || hiding.after.isEmpty,
      hiding.before.count + hiding.after.count <= most
    {
      return hiding
    }
    try check(run, frames)
    return Selection(decodeIndices: run.isReversed ? own.reversed() : own.sorted())
  }

  /// The frames of a range and those that they need; nil where that cannot be said.
  private func hidden(_ frames: ClosedRange<Int>, _ own: [Int]) -> Selection? {
    guard let last = own.max(),
      let key = (0...frames.lowerBound).last(where: isFreeStart)
    else { return nil }
    let first = table.entries[key].decodeIndex
    var selection = Selection()
    // What is decoded in between is shown not much later than the last of them.
    for index in key..<table.entries.count {
      let place = table.entries[index].decodeIndex
      if place < first || place > last {
        if index > frames.upperBound, firstDecoded[index] > last { break }
        continue
      }
      selection.decodeIndices.append(place)
      if index < frames.lowerBound { selection.before.append(place) }
      if index > frames.upperBound { selection.after.append(place) }
    }
    selection.decodeIndices.sort()
    // A packet that is no frame of the table (dropped by an edit list) would be missing.
    return selection.decodeIndices.count == last - first + 1 ? selection : nil
  }

  private func check(_ run: PlaybackRun, _ frames: ClosedRange<Int>) throws(ExportError) {
    let (first, last) = (frames.lowerBound, frames.upperBound)
    if run.isReversed {
      guard frames.allSatisfy({ table.entries[$0].isIndependent }) else {
        throw ExportError(
          .unsupportedSource,
          "\(path) plays backwards from \(seconds(run.end)) to \(seconds(run.start)) s, and its "
            + "pictures need those before them",
          hint: "render it with --fps; pictures that stand alone (MJPEG, FFV1) can be copied so")
      }
      return
    }
    guard isFreeStart(first) else {
      throw refusal("starts", run.start, first, "no picture can be decoded by itself") {
        $0 < table.entries.count && isFreeStart($0)
      }
    }
    guard isFreeEnd(last + 1) else {
      throw refusal("ends", run.end, last + 1, "pictures need later ones that would be missing") {
        $0 > first && isFreeEnd($0)
      }
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

  /// Why a cut is not free, and where the nearest ones are that are.
  private func refusal(
    _ verb: String, _ cut: Rational, _ place: Int, _ why: String, isFree: (Int) -> Bool
  ) -> ExportError {
    let before = (0...place).reversed().first(where: isFree)
    let after = ((place + 1)..<max(place + 1, table.entries.count + 1)).first(where: isFree)
    let free = [before, after].compactMap { index in
      index.flatMap { try? table.time(ofFrame: Int64($0)) }.map { "\($0.secondsText) s" }
    }
    return ExportError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(verb) at \(seconds(cut)) s, where \(why)",
      hint: free.isEmpty
        ? "render it with --fps"
        : "cut at \(free.joined(separator: " or ")), or render it with --fps")
  }
}
