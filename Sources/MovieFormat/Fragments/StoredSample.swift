// SPDX-License-Identifier: Apache-2.0

/// A sample whose bytes are in the file.
package struct StoredSample: Hashable, Sendable {
  /// The track's index in the head.
  package var track: Int
  /// Where its bytes begin, from the beginning of the file.
  package var position: Int64
  package var byteCount: Int
  /// When it is decoded and shown, in ticks of its track from the track's first.
  package var ticks: Int64
  /// How long it lasts, in ticks; until the next one comes, how long it would where none follows.
  package var duration: Int64
  package var isKeyFrame: Bool
  /// ``SampleCheck`` of its bytes.
  package var check: UInt64
  package var end: Int64 { position + Int64(byteCount) }

  package init(
    track: Int, position: Int64 = 0, byteCount: Int, ticks: Int64, duration: Int64,
    isKeyFrame: Bool, check: UInt64
  ) {
    self.track = track
    self.position = position
    self.byteCount = byteCount
    self.ticks = ticks
    self.duration = duration
    self.isKeyFrame = isKeyFrame
    self.check = check
  }
}
