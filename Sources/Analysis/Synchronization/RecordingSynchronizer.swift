// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

/// Measures the time offset between recordings of the same event.
///
/// It compares what the recordings contain, and not their clocks. Blocks the calling thread, which
/// may be any.
public struct RecordingSynchronizer: Sendable {
  /// The kind of event to compare; nil to try audio first, and then a flash.
  public var method: RecordingOffset.Method?
  /// The greatest offset that is searched; nil to search all offsets at which the recordings
  /// overlap.
  public var maximumOffset: MediaTime?

  /// Creates a synchronizer.
  public init(method: RecordingOffset.Method? = nil, maximumOffset: MediaTime? = nil) {
    (self.method, self.maximumOffset) = (method, maximumOffset)
  }

  /// Measures the offset of a recording to a reference.
  ///
  /// At most the first half hour of audio is read.
  ///
  /// - Parameters:
  ///   - recording: The recording.
  ///   - reference: The recording in whose time the offset is given.
  ///   - isCancelled: Polled between blocks of audio and between frames.
  /// - Returns: The offset with its uncertainty.
  /// - Throws: `MediaError` with `.nothingInCommon`, with `.ambiguousMatch` for an event that
  ///   repeats, with `.invalidData` for a recording without the track that the method needs, or
  ///   `.cancelled`.
  public func offset(
    of recording: Asset, to reference: Asset, isCancelled: () -> Bool = { false }
  ) throws(MediaError) -> RecordingOffset {
    let hasAudio = recording.audioTrack != nil && reference.audioTrack != nil
    let hasVideo = recording.videoTrack != nil && reference.videoTrack != nil
    switch method {
    case .audio: return try audioOffset(recording, reference, isCancelled)
    case .flash: return try flashOffset(recording, reference, isCancelled)
    case nil: break
    }
    guard hasAudio else { return try flashOffset(recording, reference, isCancelled) }
    do throws(MediaError) { return try audioOffset(recording, reference, isCancelled) } catch {
      guard [.nothingInCommon, .ambiguousMatch].contains(error.code), hasVideo else { throw error }
      do throws(MediaError) {
        return try flashOffset(recording, reference, isCancelled)
      } catch let other {
        // Throws the error of the audio comparison instead of that of the flash comparison, because
        // the audio error suggests a remedy.
        throw other.code == .cancelled ? other : error
      }
    }
  }

  private func audioOffset(
    _ recording: Asset, _ reference: Asset, _ isCancelled: () -> Bool
  ) throws(MediaError) -> RecordingOffset {
    for asset in [reference, recording] where asset.audioTrack == nil {
      throw MediaError(
        .invalidData, "\(asset.path) contains no audio",
        recovery: "compare the video, by a flash that both recordings show")
    }
    let first = try MonoAudio(reference, isCancelled: isCancelled)
    let second = try MonoAudio(recording, isCancelled: isCancelled)
      .converted(to: first.sampleRate)
    return try AudioAlignment(first.signal(), second.signal(), sampleRate: first.sampleRate)
      .offset(limit: maximumOffset?.doubleValue, names: (reference.path, recording.path))
  }

  private func flashOffset(
    _ recording: Asset, _ reference: Asset, _ isCancelled: () -> Bool
  ) throws(MediaError) -> RecordingOffset {
    let first = FlashAlignment.edges(try Self.brightness(reference, isCancelled))
    let second = FlashAlignment.edges(try Self.brightness(recording, isCancelled))
    return try FlashAlignment.offset(
      first, second, limit: maximumOffset?.doubleValue, names: (reference.path, recording.path))
  }

  /// The mean brightness of all frames; a frame that cannot be decoded is left out.
  private static func brightness(
    _ asset: Asset, _ isCancelled: () -> Bool
  ) throws(MediaError) -> FlashAlignment.Brightness {
    guard let frames = asset.videoTrack?.frames else {
      throw MediaError(
        .invalidData, "\(asset.path) contains no video",
        recovery: "compare the audio of recordings that have it")
    }
    var reader = try FrameReader(asset)
    var image = PixelBuffer(format: .gray)
    var result = FlashAlignment.Brightness()
    for index in frames.entries.indices {
      if isCancelled() { throw .readingCancelled(asset) }
      do throws(MediaError) { try reader.copyFrame(at: index, into: &image) } catch {
        guard error.code == .invalidData else { throw error }
        continue
      }
      let sum = image.withUnsafeBytes(ofPlane: 0) { $0.reduce(0) { $0 + Int($1) } }
      result.times.append(try frames.time(ofFrame: Int64(index)).doubleValue)
      result.values.append(Double(sum) / Double(max(1, image.width * image.height)))
    }
    return result
  }
}
