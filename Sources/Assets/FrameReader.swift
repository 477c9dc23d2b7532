// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore

/// Reads single pictures of an asset, exactly, in any order; forward is fastest.
public struct FrameReader: ~Copyable {
  private let asset: Asset
  private let track: VideoTrack
  private var source: PacketSource
  /// The frame that decoding gives next, in order of presentation; nil when it is unknown.
  private var nextIndex: Int?
  /// The frame given last, since the same one is often asked for again.
  private var last: (index: Int, picture: MediaFrame)?
  /// Which frames will be asked for; all of them where nil.
  private var wanted: [Bool]?
  /// What frames are converted with, and the format that it was made for.
  var converter: FrameConverter?
  var converterFormat: PixelFormat?
  private let threadCount: Int
  private let undecodable: UndecodableFramePolicy
  /// Frames that could not be decoded, whether asked for or tried as substitutes.
  private var broken: Set<Int> = []
  /// The frames that were asked for and could not be decoded, by number, each once, in the order
  /// in which they were asked for.
  public private(set) var undecodableFrames: [Int] = []

  /// How many frames are tried at most as a substitute for one that cannot be decoded.
  private static let mostSubstitutes = 256

  /// Opens the asset's pictures.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - undecodable: What is given for a frame that cannot be decoded: with `hold` another one,
  ///     else an error.
  /// - Throws: `MediaError` with `.invalidData` for an asset without pictures that can be decoded.
  public init(
    _ asset: Asset, undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    try self.init(asset, wanted: nil, undecodable: undecodable)
  }

  /// Opens the asset's pictures for somebody who wants only some of them: others are not decoded
  /// where no wanted one needs them.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - wanted: Which frames will be asked for, by number; all of them where nil.
  ///   - threadCount: How many threads may decode; 0 lets libav choose by the processors.
  ///   - undecodable: As ``init(_:undecodable:)`` has it.
  /// - Throws: `MediaError` as ``init(_:undecodable:)`` does.
  package init(
    _ asset: Asset, wanted: [Bool]?, threadCount: Int = 0,
    undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    guard let track = asset.videoTrack else { throw .invalid(asset.path, "holds no pictures") }
    let source = try PacketSource.open(asset, track.format, threadCount: threadCount)
    self.asset = asset
    self.track = track
    self.source = consume source
    self.wanted = wanted
    self.threadCount = threadCount
    self.undecodable = undecodable
    nextIndex = 0
  }

  /// How the file asks players to rotate its images; not at all by other than multiples of 90
  /// degrees.
  package var turn: FrameRotation { track.turn ?? .none }

  /// The number of the frame that is shown at a time: the last that starts at or before it.
  ///
  /// - Throws: `MediaError` with `.outsideSource` before the first frame and from the end on.
  public func index(at time: MediaTime) throws(MediaError) -> Int {
    guard let index = track.frames.index(at: time) else {
      throw MediaError(
        .outsideSource, "\(asset.path) shows no frame at \(time.displayText) s",
        recovery: "it ends at \(asset.duration.displayText) s")
    }
    return index
  }

  /// The picture of a frame by its number in order of presentation, from 0.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a frame that is not there, `.invalidData`
  ///   for one that cannot be decoded.
  package mutating func picture(at index: Int) throws(MediaError) -> MediaFrame {
    guard track.frames.entries.indices.contains(index) else {
      throw MediaError(
        .outsideSource, "\(asset.path) has no frame \(index)",
        recovery: "its \(track.frameCount) frames are counted from 0")
    }
    if let last, last.index == index { return last.picture }
    if let listed = wanted, !listed.indices.contains(index) || !listed[index] {
      // What was left out is decoded after all.
      wanted = nil
      nextIndex = nil
    }
    if !broken.contains(index), let picture = try decode(index) {
      last = (index, picture)
      return picture
    }
    broken.insert(index)
    if !undecodableFrames.contains(index) { undecodableFrames.append(index) }
    guard undecodable == .hold else {
      throw .invalid(asset.path, "has a frame \(index) that cannot be decoded")
    }
    return try substitute(for: index)
  }

  /// The picture of the last frame before one that can be decoded, or of the first behind it.
  ///
  /// - Throws: `MediaError` with `.invalidData` where none near it can be decoded.
  package mutating func substitute(for index: Int) throws(MediaError) -> MediaFrame {
    let before = (0..<index).reversed().prefix(Self.mostSubstitutes)
    let behind = track.frames.entries.indices.dropFirst(index + 1).prefix(Self.mostSubstitutes)
    for other in Array(before) + behind where !broken.contains(other) {
      if let last, last.index == other { return last.picture }
      wanted = nil
      if let picture = try decode(other) {
        last = (other, picture)
        return picture
      }
      broken.insert(other)
    }
    throw .invalid(asset.path, "has no frame near frame \(index) that can be decoded")
  }

  /// The picture of a frame; nil where it cannot be decoded.
  private mutating func decode(_ index: Int) throws(MediaError) -> MediaFrame? {
    if isAhead(index), let picture = try decodeOn(to: index) { return picture }
    var start = keyFrame(before: index)
    try seek(to: start)
    if let picture = try decodeOn(to: index) { return picture }
    // A key frame that was none, or a container that seeks past it: once more from farther back.
    if start > 0 {
      start = keyFrame(before: start - 1)
      try seek(to: start)
      if let picture = try decodeOn(to: index) { return picture }
    }
    return nil
  }

  /// Decodes up to a frame; nil when it does not come.
  private mutating func decodeOn(to index: Int) throws(MediaError) -> MediaFrame? {
    let start = track.frames.fileTicks(of: index)
    let (frames, listed) = (track.frames, wanted)
    // Packets go in ahead of the frame that is waited for.
    let isWanted = { (ticks: Int64) -> Bool in
      guard let listed else { return true }
      guard let position = frames.index(ofFileTicks: ticks) else { return true }
      return !listed.indices.contains(position) || listed[position]
    }
    while true {
      let next: MediaFrame?
      do throws(LibAVError) { next = try source.nextFrame(from: start, isWanted) } catch {
        // A damaged packet costs its own frame; others may still come.
        if error.systemErrorNumber != nil { throw MediaError(reading: error) }
        continue
      }
      guard let frame = next else { break }
      guard let ticks = frame.pts, let position = track.frames.index(ofFileTicks: ticks) else {
        continue
      }
      nextIndex = position + 1
      if position == index { return frame }
      if position > index { break }
    }
    nextIndex = nil
    return nil
  }

  /// Whether decoding on reaches a frame sooner than seeking to the key frame before it.
  private func isAhead(_ index: Int) -> Bool {
    guard let nextIndex, nextIndex <= index else { return false }
    return keyFrame(before: index) <= nextIndex || index - nextIndex < 8
      || track.frames.madeTicks != nil
  }

  /// The last key frame at or before a frame, in order of presentation.
  private func keyFrame(before index: Int) -> Int {
    var position = index
    while position > 0, !track.frames.entries[position].isKeyFrame { position -= 1 }
    return position
  }

  private mutating func seek(to index: Int) throws(MediaError) {
    nextIndex = nil
    let entry = track.frames.entries[index]
    // The start needs no seeking, which some containers cannot do. Packets without times of their
    // own are known by their count from there.
    guard entry.decodeIndex > 0, track.frames.madeTicks == nil else {
      source = try PacketSource.open(asset, track.format, threadCount: threadCount)
      return
    }
    // The index of a movie is by decoding times; others list times of presentation.
    let stored = asset.container == "mov" ? entry.decodeTicks : nil
    do throws(LibAVError) {
      try source.seek(to: stored ?? track.frames.fileTicks(of: index))
    } catch { throw MediaError(reading: error) }
  }
}

extension FrameTable {
  /// A frame's time in the file's own ticks.
  fileprivate func fileTicks(of index: Int) -> Int64 {
    originTicks &+ entries[index].ticks / tickFactor
  }

  /// The frame that is at a time in the file's own ticks, exactly.
  fileprivate func index(ofFileTicks ticks: Int64) -> Int? {
    let (offset, overflow) = ticks.subtractingReportingOverflow(originTicks)
    let (scaled, scaleOverflow) = offset.multipliedReportingOverflow(by: tickFactor)
    guard !overflow, !scaleOverflow, let position = lastIndex(atOrBefore: scaled),
      entries[position].ticks == scaled
    else { return nil }
    return position
  }
}
