// SPDX-License-Identifier: Apache-2.0

/// A sample that is stored in the file, without its bytes.
package struct StoredSample: Hashable, Sendable {
  /// The index of the track in the file.
  package var track: Int
  /// The byte offset of the sample in the file.
  package var position: Int64
  package var byteCount: Int
  /// The decoding time, in track ticks since the track's first sample.
  package var ticks: Int64
  /// The time from decoding to presentation, in track ticks.
  package var presentationOffset: Int64
  /// The duration in track ticks.
  ///
  /// It is provisional until the next sample of the track arrives.
  package var duration: Int64
  package var isKeyFrame: Bool
  /// Whether no other sample depends on this one.
  package var isDroppable: Bool
  /// The ``SampleCheck`` of the sample's bytes.
  package var check: UInt64
  package var end: Int64 { position + Int64(byteCount) }

  /// The value of `track` in the records of attachments, which belong to no track.
  static let attachment = 255

  package init(
    track: Int, position: Int64 = 0, byteCount: Int, ticks: Int64, presentationOffset: Int64 = 0,
    duration: Int64, isKeyFrame: Bool, isDroppable: Bool = false, check: UInt64
  ) {
    self.track = track
    self.position = position
    self.byteCount = byteCount
    self.ticks = ticks
    self.presentationOffset = presentationOffset
    self.duration = duration
    self.isKeyFrame = isKeyFrame
    self.isDroppable = isDroppable
    self.check = check
  }

  /// Whether these bytes are identical to the sample that was written, according to that sample's
  /// checksum.
  func isWhole(_ bytes: [UInt8]) -> Bool {
    bytes.count == byteCount
      && bytes.withUnsafeBytes { SampleCheck.value(of: $0, at: position) } == check
  }
}
