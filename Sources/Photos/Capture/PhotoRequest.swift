// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore

/// A message to the capture thread.
///
/// The message contains no references, so the capture thread neither allocates nor frees memory for
/// it.
struct PhotoRequest {
  enum Action {
    case take, stop
    /// Selects one frame in order to measure its brightness.
    case measure
  }

  let action: Action
  /// The number that identifies the capture.
  let id: Int64
  /// The time for which the first photo is requested, in microseconds of the driver's clock.
  var time: Int64 = 0
  var count = 1
  /// The interval of a time lapse in nanoseconds, or 0 for consecutive frames.
  var interval: Int64 = 0
  /// The length of time before the photo for which frames must be in the ring from which Live Photo
  /// movies are recorded, in microseconds.
  var preRoll: Int64 = 0
  /// The index in the capture of the first photo of this request.
  var firstIndex = 0
  /// Whether this request is the last one of its capture.
  var isFinal = true

  /// The time for which the photo with this index in the request is requested, in microseconds.
  func time(ofPhoto number: Int) -> Int64 {
    let (offset, overflow) = interval.multipliedReportingOverflow(by: Int64(number))
    return overflow ? .max : time.addingReportingOverflow(offset / 1_000).partialValue
  }
}

/// A message from the capture thread to the thread that encodes photos.
enum PhotoSelection {
  /// A frame for a photo.
  ///
  /// The bytes of the frame are the next ones in the queue.
  case frame(SelectedFrame)
  /// The capture ended before its last photo.
  case end(id: Int64, takenCount: Int, PhotoEnd)
}

/// A frame that was chosen for a photo.
struct SelectedFrame {
  let id: Int64
  let index: Int
  /// Whether the frame is the last one of its request.
  let endsRequest: Bool
  /// Whether the frame is the last one of its capture.
  let isLast: Bool
  let isMeasurement: Bool
  /// The time for which the photo was requested, in microseconds of the driver's clock.
  let requestTime: Int64
  let frame: CandidateFrame
}

/// The reason why a capture of photos ended early.
enum PhotoEnd {
  /// The program stopped the capture.
  case stopped
  /// The memory for frames that wait to be encoded is full.
  case memoryFull
  /// The exposure or the light could not be set.
  case failed(MediaError)
  /// The stream of the camera ended.
  case streamEnded(StopReason, MediaError?)
}

/// A frame that may be chosen for a photo.
struct CandidateFrame {
  let observation: FrameObservation
  let exposure: ExposureInForce
  /// The number of frames that were delivered before this frame.
  let index: Int64

  /// The capture time in microseconds of the driver's clock.
  var time: Int64 { observation.microseconds }
}
