// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// Encodes frames of a movie in the order of a list of indices.
struct FrameImages: ~Copyable {
  private let frames: [(index: Int, path: String)]
  private let rawFormat: RawFrameFormat?
  private let skips: Bool
  private var raw: RawFrameSequence?
  private var reader: FrameReader
  private var writer: FrameImageWriter
  private var position = 0
  /// The indices of the frames that could not be decoded, in the order of the list.
  private(set) var undecodable: [Int] = []

  init(
    _ asset: Asset, _ frames: [(Int, String)], raw rawFormat: RawFrameFormat?,
    rawRange: RawFrameRange, appliesRotation: Bool, _ policy: UndecodableFramePolicy
  ) throws {
    let reader = try FrameReader(asset, undecodable: policy)
    var raw: RawFrameSequence?
    if let rawFormat {
      raw = try RawFrameSequence(
        asset, frames: frames.map(\.0), as: rawFormat.pixelFormat,
        isFullRange: rawRange == .full, appliesRotation: appliesRotation, undecodable: policy)
    }
    self.frames = frames.map { (index: $0.0, path: $0.1) }
    self.rawFormat = rawFormat
    skips = policy == .skip
    self.reader = consume reader
    self.raw = consume raw
    writer = FrameImageWriter(asset, appliesRotation: appliesRotation)
  }

  /// Encodes the next frame in the list.
  ///
  /// Returns nil for a frame that cannot be decoded if the policy is `skip`.
  mutating func next() throws -> EncodedFrame? {
    let (index, path) = frames[position]
    position += 1
    if let rawFormat {
      guard let frame = try raw?.nextFrame() else { return nil }
      if frame.isUndecodable, !undecodable.contains(index) { undecodable.append(index) }
      guard frame.byteCount > 0 else { return nil }
      return EncodedFrame(
        content: .raw(frame), format: rawFormat.rawValue, width: frame.width, height: frame.height)
    }
    defer { undecodable = reader.undecodableFrames }
    do { return try writer.frame(index, from: &reader, for: path) } catch {
      guard skips, reader.undecodableFrames.contains(index) else { throw error }
      return nil
    }
  }
}
