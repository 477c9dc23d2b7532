// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The camera, the audio and the options with which the files of a take are written.
///
/// The files of a take, and the clips of a triggered capture, differ only in some of these values.
struct TakeConfiguration {
  let input: DeviceInput
  var settings: RecordingSettings
  let plan: VideoPipelinePlan
  let control: CaptureControl
  /// The source of the take's audio.
  ///
  /// Nil for a take without audio.
  var audio: TakeAudio?
  /// Whether the camera's stream was started for this take.
  var beginsWithStream: Bool
  /// The values of the camera's controls during the stream.
  var controls: [String: String] = [:]
  /// The rotation, mirroring and zoom of the connection to the camera, or nil without a connection.
  var geometry: ConnectionGeometry?
  /// The trigger of a clip, or nil for a take without a trigger.
  var trigger: CaptureTrigger?
  /// Returns the current items of the file's metadata, or is nil if the items cannot change during
  /// the take.
  var metadata: (@Sendable () -> [MetadataItem])?

  /// The camera's mode.
  struct Mode {
    let name: String
    let requestedFrameRate: FrameRate
    let negotiatedFrameRate: FrameRate
  }

  /// The mode that the camera has now.
  var mode: Mode {
    Mode(
      name: input.modeName, requestedFrameRate: input.requestedFrameRate,
      negotiatedFrameRate: input.negotiatedFrameRate)
  }

  /// Creates the queue from the sink to the writer.
  ///
  /// The queue of a burst holds the whole take.
  func makeQueue() throws(MediaError) -> FrameQueue {
    if settings.isBurst {
      let memory = BurstMemory(input)
      let capacity = memory.capacity(for: settings.limit)
      // Compressed frames may be much smaller than the driver's maximum size, so more of them fit
      // in the queue. The queue therefore has one frame record for every 4 KiB of its memory, up to
      // 2^22 records.
      return try FrameQueue(
        capacity: capacity, largestFrame: input.maximumByteCount,
        recordCount: max(memory.frameCount, min(capacity / 4_096, 1 << 22)))
    }
    return try FrameQueue(
      capacity: FrameQueue.byteCount(
        largestFrame: input.maximumByteCount, frameRate: input.negotiatedFrameRate),
      largestFrame: input.maximumByteCount, pool: input.pool)
  }

  /// Creates the empty account of frames from this camera.
  func makeAccount() -> FrameAccount {
    let control = control
    return FrameAccount(
      frameRate: input.negotiatedFrameRate, trustsCounter: input.driver.countsExactly,
      beginsWithStream: beginsWithStream
    ) { control.switchedOn.load(ordering: .relaxed) }
  }

  /// The codec of the audio, if the take has audio.
  var audioCodec: AudioCodec {
    audio?.codec(wanted: settings.audioCodec, besideLossless: plan.isLossless) ?? .aac
  }

  /// The metadata tags of a file.
  ///
  /// - Parameters:
  ///   - first: The first frame.
  ///   - leadIn: The number of hidden lead-in frames before the first frame.
  ///   - frameRate: The capture rate.
  ///   - gaps: The gaps in the recording. Nil while unknown.
  /// - Returns: The tags by name.
  func tags(
    _ first: FrameObservation, leadIn: Int, frameRate: FrameRate, gaps: [FrameGap]?
  ) -> [String: String] {
    let recording = RecordingTags.Recording(
      device: input.device.address, mode: input.modeName,
      firstCaptureNs: first.microseconds &* 1_000, firstSequence: Int64(first.sequence),
      gaps: gaps?.filter { $0.afterIndex >= 0 }.map {
        RecordingTags.Recording.Gap(afterIndex: $0.afterIndex, count: $0.count)
      },
      trigger: trigger.map {
        RecordingTags.Recording.Trigger(
          source: $0.source.rawValue, captureNs: $0.microseconds &* 1_000)
      }, controls: controls, switchedOnUs: control.switchedOn.load(ordering: .relaxed),
      beginsWithStream: beginsWithStream, countsExactly: input.driver.countsExactly,
      leadIn: leadIn)
    var tags = RecordingTags.metadata(
      frameRate: frameRate, recording: recording,
      agedMicroseconds: input.driver.microseconds() &- first.microseconds)
    if let title = settings.title { tags["title"] = title }
    for item in metadata?() ?? settings.metadata {
      tags[item.key.rawValue] = item.value.description
    }
    return tags
  }
}

extension DeviceInput {
  /// The current values of the camera's controls, by name.
  ///
  /// Empty if they cannot be read.
  func controlValues() -> [String: String] {
    guard device.kind == .v4l2, let list = try? CameraControls(device: device).list() else {
      return [:]
    }
    var values: [String: String] = [:]
    for control in list {
      switch control.value {
      case .number(let number): values[control.name] = "\(number)"
      case .text(let text): values[control.name] = text
      case .numbers, .rectangle, nil: break
      }
    }
    return values
  }
}
