// SPDX-License-Identifier: Apache-2.0

import Overcrank

extension RecordText {
  /// The sound of a take for people.
  static func lines(_ audio: RecordedAudio) -> [String] {
    func milliseconds(_ time: Duration) -> String { decimal(time.doubleValue * 1e3, 3) }
    var parts = [
      "sound: \(audio.device), \(audio.codec), \(audio.sampleRate) Hz, \(audio.channelCount) ch"
    ]
    if let offset = audio.startOffset {
      parts.append("begins \(milliseconds(offset)) ms after the first picture")
    } else {
      parts.append("nothing was heard")
    }
    if let drift = audio.driftPPM { parts.append("drift \(decimal(drift, 2)) ppm, corrected") }
    if let error = audio.maxSyncError {
      parts.append("at most \(milliseconds(error)) ms off")
    }
    var lines = [parts.joined(separator: ", ")]
    for gap in audio.gaps.prefix(10) {
      lines.append(
        "gap of sound: \(gap.sampleCount) samples at "
          + "\(decimal(gap.time.doubleValue, 6)) s, \(gap.cause.rawValue)")
    }
    if audio.gaps.count > 10 { lines.append("gap of sound: and \(audio.gaps.count - 10) more") }
    return lines
  }
}
