// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The status line of a preview.
struct PreviewStatus {
  /// The state of a recording that runs together with the preview.
  struct Recording: Sendable {
    var stored: Int64 = 0
    var missing: Int64 = 0
    var bytes: Int64 = 0
    var queueFill = 0.0
    /// The memory before a trigger; nil without triggers.
    var preRoll: PreRoll?
  }

  /// The time from before a trigger that is in memory.
  struct PreRoll: Sendable {
    /// The duration of the frames in memory, at most `wanted`.
    var held = MediaTime.zero
    let wanted: MediaTime
    var isFull = false
    /// Whether triggers are ignored until the memory is full.
    let armsWhenFull: Bool

    /// The ring that shows it.
    var gauge: ViewGauge {
      let part = wanted > .zero ? held.doubleValue / wanted.doubleValue : 1
      guard !isFull else {
        return ViewGauge(part: 1, label: "ready: the pre-roll is full")
      }
      let text = "pre-roll \(decimal(held.doubleValue, 1)) of \(decimal(wanted.doubleValue, 1)) s"
      return ViewGauge(
        part: min(part, 0.99), label: armsWhenFull ? "not armed: \(text)" : text)
    }
  }

  /// The measured frame rate of the camera; nil until it is known.
  var frameRate: Double?
  /// The number of frames that are missing according to the driver's counter.
  var lost: Int64 = 0
  var recording: Recording?
  /// The rate at which the recorded file grows, in bytes per second.
  var bytesPerSecond = 0.0
  /// The highest level among all audio channels in dBFS; nil without audio.
  var peakDBFS: Double?
  /// The manual exposure duration; nil if it is automatic or unknown.
  var exposureDuration: MediaTime?
  var delay = MediaTime.zero
  var speed = Speed.normal
  var histogram: LumaHistogram?

  var text: String {
    var parts = [frameRate.map { "\(decimal($0, 1)) fps" } ?? "- fps"]
    parts.append("lost \(recording?.missing ?? lost)")
    if let recording {
      parts.append("stored \(recording.stored)")
      parts.append("queue \(decimal(recording.queueFill * 100, 0)) %")
      parts.append("disk \(decimal(bytesPerSecond / 1e6, 1)) MB/s")
    }
    if let peakDBFS { parts.append("\(decimal(max(-60, peakDBFS), 0)) dBFS") }
    parts.append(exposureDuration.map { "exposure \(decimal($0.doubleValue * 1e3, 2)) ms" } ?? "")
    if delay > .zero {
      parts.append("delay \(decimal(delay.doubleValue, 1)) s")
      if speed != .normal { parts.append("speed \(speed)") }
    }
    if let histogram {
      parts.append("clipped \(decimal(histogram.clippedPart * 100, 1)) %")
      parts.append("black \(decimal(histogram.blackPart * 100, 1)) %")
    }
    return parts.filter { !$0.isEmpty }.joined(separator: "  ")
  }
}
