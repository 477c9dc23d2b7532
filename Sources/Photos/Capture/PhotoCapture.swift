// SPDX-License-Identifier: Apache-2.0

/// A capture of one or more photos that was requested from an output.
public struct PhotoCapture: Sendable {
  /// The settings, with the values that the camera determines.
  public let resolvedSettings: ResolvedPhotoSettings
  private let stream: AsyncStream<PhotoEvent>
  private let processor: PhotoProcessor

  init(
    resolvedSettings: ResolvedPhotoSettings, stream: AsyncStream<PhotoEvent>,
    processor: PhotoProcessor
  ) {
    (self.resolvedSettings, self.stream, self.processor) = (resolvedSettings, stream, processor)
  }

  /// The number that identifies the capture: `PhotoSettings.uniqueID`.
  public var uniqueID: Int64 { resolvedSettings.uniqueID }

  /// All events of the capture.
  ///
  /// The sequence can be iterated only once.
  ///
  /// No event is lost, and the sequence ends after ``PhotoEvent/didFinishCapture(id:error:)``.
  /// Events are kept in memory until they are read.
  public var events: some AsyncSequence<PhotoEvent, Never> & Sendable { stream }

  /// Ends a burst or a time lapse early.
  ///
  /// Photos that were already taken are finished. If no photo was taken, the capture ends with
  /// `.cancelled`.
  public func stop() { processor.stop(uniqueID) }
}
