// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

extension FrameReader {
  /// Decodes the frames in a range in one pass, in ascending order.
  ///
  /// Reverse playback needs many frames of one group. If each frame were requested separately, the
  /// group would be decoded from its key frame every time.
  ///
  /// Frames that cannot be decoded are left out.
  ///
  /// - Parameters:
  ///   - range: The indices of the first and the last frame.
  ///   - isWanted: Returns true for frames that `body` needs. Other frames are decoded only if a
  ///     wanted frame depends on them.
  ///   - neighborCount: The number of frames before the range that `body` also receives if they are
  ///     decoded anyway.
  ///   - shouldContinue: Called after each decoded frame, including those that `body` does not
  ///     receive. Returns false to stop.
  ///   - body: Receives each wanted frame. Returns true to continue and false to stop.
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, or for an error while
  ///   the file is read.
  package mutating func readFrames(
    in range: ClosedRange<Int>, wanted isWanted: (Int) -> Bool, neighborCount: Int = 0,
    shouldContinue: () -> Bool = { true }, _ body: (_ index: Int, _ frame: MediaFrame) -> Bool
  ) throws(MediaError) {
    guard track.frames.entries.indices.contains(range.lowerBound),
      track.frames.entries.indices.contains(range.upperBound)
    else {
      throw MediaError(
        .outsideSource, "the video has no frames \(range.lowerBound) to \(range.upperBound)",
        recovery: "choose from its \(track.frameCount) frames, counted from 0")
    }
    var start = range.lowerBound
    if !isAhead(start) {
      start = keyFrame(before: start)
      try seek(to: start)
    }
    if try pass(range, isWanted, neighborCount, shouldContinue, body) || start == 0 { return }
    // The key frame may be marked wrongly, or the seek may have ended after it. The second attempt
    // starts at the previous key frame.
    try seek(to: keyFrame(before: max(0, start - 1)))
    _ = try pass(range, isWanted, neighborCount, shouldContinue, body)
  }

  /// Continues decoding to the end of a range.
  ///
  /// Returns true if the decoder returned a frame of the range or was stopped, and false otherwise.
  private mutating func pass(
    _ range: ClosedRange<Int>, _ isWanted: (Int) -> Bool, _ neighborCount: Int,
    _ shouldContinue: () -> Bool, _ body: (Int, MediaFrame) -> Bool
  ) throws(MediaError) -> Bool {
    let frames = track.frames
    // The decoder needs packets after the last frame of the range before it returns that frame.
    // Frames after the range therefore count as wanted.
    let isNeeded = { (ticks: Int64) -> Bool in
      guard let index = frames.index(ofFileTicks: ticks) else { return true }
      return index > range.upperBound || index >= range.lowerBound && isWanted(index)
    }
    var isFound = false
    while true {
      let next: MediaFrame?
      do throws(LibAVError) {
        next = try withoutActuallyEscaping(isNeeded) { (isNeeded) throws(LibAVError) in
          try source.nextFrame(from: frames.fileTicks(of: range.lowerBound), isNeeded)
        }
      } catch {
        // Only the frame of a damaged packet is lost. Later frames may still be decodable.
        guard error.isDamage else { throw MediaError(reading: error) }
        continue
      }
      guard let frame = next else { break }
      guard let ticks = frame.pts, let index = frames.index(ofFileTicks: ticks) else { continue }
      nextIndex = index + 1
      if index > range.upperBound { return isFound }
      let isNeighbor = (range.lowerBound - neighborCount..<range.lowerBound).contains(index)
      if isNeighbor, !body(index, frame) { return true }
      if index >= range.lowerBound {
        isFound = true
        if isWanted(index), !body(index, frame) { return true }
      }
      if index == range.upperBound || !shouldContinue() { return true }
    }
    nextIndex = nil
    return isFound
  }
}
