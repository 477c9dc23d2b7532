// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore

/// Decodes single frames of an asset in any order.
///
/// Forward reading is fastest.
public struct FrameReader: ~Copyable {
  private let asset: Asset
  let track: VideoTrack
  var source: PacketSource
  /// The index of the frame that the decoder returns next, in presentation order.
  ///
  /// Nil if unknown.
  private var nextIndex: Int?
  /// The last frame returned.
  ///
  /// It is kept, because callers often request the same frame again.
  private var last: (index: Int, frame: MediaFrame)?
  /// For each frame, whether the caller will request it.
  ///
  /// Other frames are decoded only if a requested frame depends on them. Nil means that all frames
  /// may be requested.
  private var wanted: [Bool]?
  /// Converts decoded frames to the pixel format of the caller's buffer.
  ///
  /// `converterFormat` is the format for which the converter was created.
  private var converter: FrameConverter?
  private var converterFormat: PixelFormat?
  private let threadCount: Int
  /// The number of packets that were sent to decoders before the file was last reopened.
  private var retiredPacketCount = 0
  /// The number of packets sent to the decoder so far, including those that it skips.
  package var sentPacketCount: Int { retiredPacketCount + source.sentCount }
  private let undecodable: UndecodableFramePolicy
  /// The indices of all frames that could not be decoded: requested frames, and frames tried as a
  /// substitute.
  private var broken: Set<Int> = []
  /// The indices of the requested frames that could not be decoded.
  ///
  /// Each index appears once, in the order of the requests.
  public private(set) var undecodableFrames: [Int] = []

  /// The greatest number of frames in each direction that are tried as a substitute for an
  /// undecodable frame.
  private static let maximumSubstitutes = 256

  /// Opens the asset's video.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - undecodable: The policy for frames that cannot be decoded. `hold` returns the nearest
  ///     frame that can be decoded. With the other policies, an error is thrown.
  /// - Throws: `MediaError` with `.invalidData` for an asset without decodable video.
  public init(
    _ asset: Asset, undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    try self.init(asset, wanted: nil, undecodable: undecodable)
  }

  /// Opens the asset's video to read a subset of its frames.
  ///
  /// The other frames are decoded only if a requested frame depends on them.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - wanted: For each frame, whether the caller will request it. Nil means all frames.
  ///   - threadCount: The number of decoder threads. 0 lets libav choose.
  ///   - undecodable: The policy for frames that cannot be decoded.
  /// - Throws: `MediaError` as ``init(_:undecodable:)`` does.
  package init(
    _ asset: Asset, wanted: [Bool]?, threadCount: Int = 0,
    undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    guard let track = asset.videoTrack else { throw .invalid(asset.path, "contains no video") }
    let source = try PacketSource.open(asset, track.format, threadCount: threadCount)
    self.asset = asset
    self.track = track
    self.source = consume source
    self.wanted = wanted
    self.threadCount = threadCount
    self.undecodable = undecodable
    nextIndex = 0
  }

  /// The rotation that players apply, or none if the angle is not a multiple of 90 degrees.
  package var frameRotation: FrameRotation { track.frameRotation ?? .none }

  /// The index of the frame shown at a time: the last frame that starts at or before this time.
  ///
  /// - Throws: `MediaError` with `.outsideSource` before the first frame and at or after the end.
  public func index(at time: MediaTime) throws(MediaError) -> Int {
    guard let index = track.frames.index(at: time) else {
      throw MediaError(
        .outsideSource, "\(asset.path) shows no frame at \(time.displayText) s",
        recovery: "it ends at \(asset.duration.displayText) s")
    }
    return index
  }

  /// Decodes a frame by its index in presentation order, from 0.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, `.invalidData` for a
  ///   frame that cannot be decoded.
  package mutating func mediaFrame(at index: Int) throws(MediaError) -> MediaFrame {
    guard track.frames.entries.indices.contains(index) else {
      throw MediaError(
        .outsideSource, "\(asset.path) has no frame \(index)",
        recovery: "choose from its \(track.frameCount) frames, counted from 0")
    }
    if let last, last.index == index { return last.frame }
    if let listed = wanted, !listed.indices.contains(index) || !listed[index] {
      // The caller requests a frame that it had excluded before. All frames are decoded from now
      // on.
      wanted = nil
      nextIndex = nil
    }
    if !broken.contains(index), let frame = try decode(index) {
      last = (index, frame)
      return frame
    }
    broken.insert(index)
    if !undecodableFrames.contains(index) { undecodableFrames.append(index) }
    guard undecodable == .hold else {
      let startsInside = track.frames.keyFrame(atOrBefore: index) == nil
      throw MediaError(
        .invalidData,
        startsInside
          ? "\(asset.path) starts inside a group of pictures: frame \(index) cannot be decoded"
          : "\(asset.path) has a frame \(index) that cannot be decoded",
        recovery: Recovery(
          "leave out the frames that cannot be decoded", .change(.undecodableFrames)))
    }
    return try substitute(for: index)
  }

  /// A substitute for an undecodable frame: the nearest decodable frame before it.
  ///
  /// If no frame before it can be decoded, this is the nearest decodable frame after it.
  ///
  /// - Throws: `MediaError` with `.invalidData` if no frame nearby can be decoded.
  package mutating func substitute(for index: Int) throws(MediaError) -> MediaFrame {
    let before = (0..<index).reversed().prefix(Self.maximumSubstitutes)
    let behind = track.frames.entries.indices.dropFirst(index + 1).prefix(Self.maximumSubstitutes)
    for other in Array(before) + behind where !broken.contains(other) {
      if let last, last.index == other { return last.frame }
      wanted = nil
      if let frame = try decode(other) {
        last = (other, frame)
        return frame
      }
      broken.insert(other)
    }
    throw .invalid(asset.path, "has no frame near frame \(index) that can be decoded")
  }

  /// Decodes a frame.
  ///
  /// Returns nil if the frame cannot be decoded.
  private mutating func decode(_ index: Int) throws(MediaError) -> MediaFrame? {
    if isAhead(index), let frame = try decodeOn(to: index) { return frame }
    var start = keyFrame(before: index)
    try seek(to: start)
    if let frame = try decodeOn(to: index) { return frame }
    // The key frame may be marked wrongly, or libavformat's seek may have ended after it. The
    // second attempt starts at the previous key frame.
    if start > 0 {
      start = keyFrame(before: start - 1)
      try seek(to: start)
      if let frame = try decodeOn(to: index) { return frame }
    }
    return nil
  }

  /// Continues decoding up to a frame.
  ///
  /// Returns nil if the decoder does not return the frame.
  private mutating func decodeOn(to index: Int) throws(MediaError) -> MediaFrame? {
    let start = track.frames.fileTicks(of: index)
    let (frames, listed) = (track.frames, wanted)
    // `isWanted` is called for each packet sent to the decoder. This includes packets of later
    // frames, because the decoder needs some of them before it returns a frame. A packet whose time
    // belongs to no known frame counts as wanted.
    let isWanted = { (ticks: Int64) -> Bool in
      guard let listed else { return true }
      guard let position = frames.index(ofFileTicks: ticks) else { return true }
      return !listed.indices.contains(position) || listed[position]
    }
    while true {
      let next: MediaFrame?
      do throws(CallFailure) { next = try source.nextFrame(from: start, isWanted) } catch {
        // Only the frame of a damaged packet is lost. Later frames may still be decodable, so
        // decoding continues.
        guard error.isDamage else { throw MediaError(reading: error) }
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

  /// Whether a frame is reached sooner by continuing to decode than by a seek to the frame's key
  /// frame.
  func isAhead(_ index: Int) -> Bool {
    guard let nextIndex, nextIndex <= index else { return false }
    return keyFrame(before: index) <= nextIndex || index - nextIndex < 8
      || !canSeek
  }

  /// Whether reading can continue from another position of the file.
  ///
  /// Seeking is impossible for packets without times, and in a file whose clock restarts. In both
  /// cases, packets are identified by their number from the start of the file.
  private var canSeek: Bool { track.frames.madeTicks == nil && asset.corrections == nil }

  /// The index of the last key frame at or before a frame, or 0 if there is none.
  func keyFrame(before index: Int) -> Int { track.frames.keyFrame(atOrBefore: index) ?? 0 }

  mutating func seek(to index: Int) throws(MediaError) {
    nextIndex = nil
    let frames = track.frames
    let entry = frames.entries[index]
    // MOV seeks by decode time, other containers by presentation time.
    let stored = asset.container == "mov" && frames.madeTicks == nil ? entry.decodeTicks : nil
    do throws(CallFailure) {
      if entry.isKeyFrame, let stored {
        if try source.seek(toKeyFrameDecodedAt: stored) || entry.decodeIndex > 0 { return }
      } else if entry.decodeIndex > 0, canSeek {
        return try source.seek(to: stored ?? frames.fileTicks(of: index))
      }
    } catch {
      // libavformat finds no key frame if the index does not mark the first one.
      guard error.isDamage else { throw MediaError(reading: error) }
    }
    // Some containers cannot seek to the start, and others cannot seek at all. The file is
    // therefore reopened, and read from the start.
    retiredPacketCount += source.sentCount
    source = try PacketSource.open(asset, track.format, threadCount: threadCount)
  }
}

extension FrameTable {
  /// The time of a frame in the file's ticks.
  func fileTicks(of index: Int) -> Int64 {
    originTicks &+ entries[index].ticks / tickFactor
  }

  /// The index of the frame at exactly this time in the file's ticks, or nil.
  func index(ofFileTicks ticks: Int64) -> Int? {
    let (offset, overflow) = ticks.subtractingReportingOverflow(originTicks)
    let (scaled, scaleOverflow) = offset.multipliedReportingOverflow(by: tickFactor)
    guard !overflow, !scaleOverflow, let position = lastIndex(atOrBefore: scaled),
      entries[position].ticks == scaled
    else { return nil }
    return position
  }
}

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
      do throws(CallFailure) {
        next = try withoutActuallyEscaping(isNeeded) { (isNeeded) throws(CallFailure) in
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

extension FrameReader {
  /// Decodes the frame shown at a time.
  ///
  /// - Parameters:
  ///   - time: The time in the asset.
  ///   - format: The pixel format of the result.
  /// - Returns: The frame in its stored size, not rotated.
  /// - Throws: `MediaError` as ``index(at:)`` and ``copyFrame(at:into:)`` do.
  public mutating func pixelBuffer(
    at time: MediaTime, as format: PixelFormat = .bgra
  ) throws(MediaError) -> PixelBuffer {
    try pixelBuffer(ofFrame: index(at: time), as: format)
  }

  /// Decodes a frame by its index in presentation order, from 0.
  ///
  /// - Parameters:
  ///   - index: The index of the frame.
  ///   - format: The pixel format of the result.
  /// - Returns: The frame in its stored size, not rotated.
  /// - Throws: `MediaError` as ``copyFrame(at:into:)`` does.
  public mutating func pixelBuffer(
    ofFrame index: Int, as format: PixelFormat = .bgra
  ) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    try copyFrame(at: index, into: &buffer)
    return buffer
  }

  /// Decodes a frame into an existing buffer, in the buffer's pixel format and the frame's stored
  /// size.
  ///
  /// The frame is not rotated. The result has video range in 4:2:0 formats, and full range in RGB
  /// and gray. If the buffer already has the frame's size, its memory is reused. The previous
  /// content of the buffer is lost even if decoding fails.
  ///
  /// - Parameters:
  ///   - index: The index in presentation order, from 0.
  ///   - buffer: The destination.
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, `.invalidData` for a
  ///   frame that cannot be decoded, `.notConvertible` for a format that libswscale does not
  ///   support.
  public mutating func copyFrame(
    at index: Int, into buffer: inout PixelBuffer
  ) throws(MediaError) {
    let frame = try mediaFrame(at: index)
    if converterFormat != buffer.format {
      converter = try FrameConverter(frames: buffer.format)
      converterFormat = buffer.format
    }
    do throws(CallFailure) { try converter?.convert(frame).copy(into: &buffer) } catch {
      throw MediaError(reading: error)
    }
  }
}

extension FrameConverter {
  /// Creates a converter for an asset's frames.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  init(frames format: PixelFormat, isFullRange: Bool = false) throws(MediaError) {
    do throws(CallFailure) { try self.init(to: format, yuvIsFullRange: isFullRange) } catch {
      throw MediaError(
        .notConvertible, "frames cannot be converted to \(format.rawValue)",
        recovery: "choose a format such as bgra, rgb24, gray, yuv420p or nv12")
    }
  }
}

extension MediaFrame {
  /// Converts a decoded frame to pixels, in its stored size.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  package func pixelBuffer(as format: PixelFormat) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    var converter = try FrameConverter(frames: format)
    do throws(CallFailure) { try converter.convert(self).copy(into: &buffer) } catch {
      throw MediaError(reading: error)
    }
    return buffer
  }
}

/// The policy for frames that cannot be decoded.
public enum UndecodableFramePolicy: String, Hashable, Sendable, CaseIterable {
  /// The operation that needs the frame throws an error.
  case stop
  /// The previous decodable frame is shown instead.
  ///
  /// At the start of a file, the first decodable frame is shown.
  case hold
  /// The frame is left out of the output.
  case skip
}
