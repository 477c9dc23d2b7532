// SPDX-License-Identifier: Apache-2.0

import Overcrank

extension RecordDocument {
  /// What became of the sound of a take.
  struct Audio: Encodable {
    struct Gap: Encodable {
      let atNs: Int64
      let samples: Int64
      let cause: String
    }

    let device: String
    let codec: String
    let sampleRate: Int
    let channels: Int
    let samples: Int64
    @Nullable var startOffsetNs: Int64?
    @Nullable var driftPpm: Double?
    @Nullable var maxSyncErrorNs: Int64?
    let gaps: [Gap]

    init(_ audio: RecordedAudio) {
      device = audio.device
      codec = audio.codec.rawValue
      sampleRate = audio.sampleRate
      channels = audio.channelCount
      samples = audio.sampleCount
      startOffsetNs = audio.startOffsetNanoseconds
      driftPpm = audio.driftPPM
      maxSyncErrorNs = audio.maxSyncErrorNanoseconds
      gaps = audio.gaps.map {
        Gap(atNs: $0.nanoseconds, samples: $0.sampleCount, cause: $0.cause.rawValue)
      }
    }
  }
}

extension RecordText {
  /// The sound of a take for people.
  static func lines(_ audio: RecordedAudio) -> [String] {
    func milliseconds(_ value: Int64) -> String { decimal(Double(value) / 1e6, 3) }
    var parts = [
      "sound: \(audio.device), \(audio.codec), \(audio.sampleRate) Hz, \(audio.channelCount) ch"
    ]
    if let offset = audio.startOffsetNanoseconds {
      parts.append("begins \(milliseconds(offset)) ms after the first picture")
    } else {
      parts.append("nothing was heard")
    }
    if let drift = audio.driftPPM { parts.append("drift \(decimal(drift, 2)) ppm, corrected") }
    if let error = audio.maxSyncErrorNanoseconds {
      parts.append("at most \(milliseconds(error)) ms off")
    }
    var lines = [parts.joined(separator: ", ")]
    for gap in audio.gaps.prefix(10) {
      lines.append(
        "gap of sound: \(gap.sampleCount) samples at "
          + "\(decimal(Double(gap.nanoseconds) / 1e9, 6)) s, \(gap.cause.rawValue)")
    }
    if audio.gaps.count > 10 { lines.append("gap of sound: and \(audio.gaps.count - 10) more") }
    return lines
  }
}
