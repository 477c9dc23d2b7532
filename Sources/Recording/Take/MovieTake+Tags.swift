// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

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

extension MovieTake {
  /// The metadata tags of the file.
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
