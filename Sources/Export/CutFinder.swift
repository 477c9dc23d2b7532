// SPDX-License-Identifier: Apache-2.0
import Assets
import MediaTiming

/// Tells which frames a range needs, and where a track can be cut without re-encoding it.
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

  /// The frames that begin in a range of the source, and the one that is on when it begins.
  ///
  /// - Throws: `ExportError` with `.cutNotOnKeyFrame`, which names the nearest free cuts.
  func frames(from start: MediaTime, to end: MediaTime) throws(ExportError) -> ClosedRange<Int> {
    guard let first = table.index(at: start) else {
      throw ExportError(
        .unsupportedSource, "\(path) shows no frame at \(start.secondsText) s",
        hint: "see slowmo info for when it ends")
    }
    let last = max(first, (try? lastFrame(before: end)) ?? first)
    guard isFreeStart(first) else {
      throw refusal("starts", start, first, "no picture can be decoded by itself") {
        $0 < table.entries.count && isFreeStart($0)
      }
    }
    guard isFreeEnd(last + 1) else {
      throw refusal("ends", end, last + 1, "pictures need later ones that would be missing") {
        $0 > first && isFreeEnd($0)
      }
    }
    return first...last
  }

  /// The last frame that begins before a time.
  private func lastFrame(before end: MediaTime) throws -> Int? {
    let ticks = try end.converted(to: table.timescale, rounding: .towardPositiveInfinity).value
    return table.lastIndex(atOrBefore: ticks - 1)
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
    _ verb: String, _ cut: MediaTime, _ place: Int, _ why: String, isFree: (Int) -> Bool
  ) -> ExportError {
    let before = (0...place).reversed().first(where: isFree)
    let after = ((place + 1)..<max(place + 1, table.entries.count + 1)).first(where: isFree)
    let free = [before, after].compactMap { index in
      index.flatMap { try? table.time(ofFrame: Int64($0)) }.map { "\($0.secondsText) s" }
    }
    return ExportError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(verb) at \(cut.secondsText) s, where \(why)",
      hint: free.isEmpty
        ? "render it with --fps"
        : "cut at \(free.joined(separator: " or ")), or render it with --fps")
  }
}
