// SPDX-License-Identifier: Apache-2.0

import Overcrank

extension RecordText {
  /// Returns the text lines about the audio of a recording.
  static func lines(_ audio: RecordedAudio) -> [String] {
    func milliseconds(_ time: Duration) -> String { decimal(time.doubleValue * 1e3, 3) }
    var parts = [
      "audio: \(audio.device), \(audio.codec), \(audio.sampleRate) Hz, \(audio.channelCount) ch"
    ]
    if let offset = audio.startOffset {
      parts.append("starts \(milliseconds(offset)) ms after the first frame")
    } else {
      parts.append("no samples received")
    }
    if let drift = audio.driftPPM { parts.append("drift \(decimal(drift, 2)) ppm, corrected") }
    if let error = audio.maxSyncError {
      parts.append("maximum sync error \(milliseconds(error)) ms")
    }
    var lines = [parts.joined(separator: ", ")]
    for gap in audio.gaps.prefix(10) {
      lines.append(
        "audio gap: \(gap.sampleCount) samples at "
          + "\(decimal(gap.time.doubleValue, 6)) s, \(gap.cause.rawValue)")
    }
    if audio.gaps.count > 10 { lines.append("audio gap: and \(audio.gaps.count - 10) more") }
    return lines
  }
}
