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

    init(_ sound: RecordedSound) {
      device = sound.device
      codec = sound.codec
      sampleRate = sound.sampleRate
      channels = sound.channelCount
      samples = sound.sampleCount
      startOffsetNs = sound.startOffsetNanoseconds
      driftPpm = sound.driftPPM
      maxSyncErrorNs = sound.maxSyncErrorNanoseconds
      gaps = sound.gaps.map {
        Gap(atNs: $0.nanoseconds, samples: $0.sampleCount, cause: $0.cause.rawValue)
      }
    }
  }
}

extension RecordText {
  /// The sound of a take for people.
  static func lines(_ sound: RecordedSound) -> [String] {
    func milliseconds(_ value: Int64) -> String { decimal(Double(value) / 1e6, 3) }
    var parts = [
      "sound: \(sound.device), \(sound.codec), \(sound.sampleRate) Hz, \(sound.channelCount) ch"
    ]
    if let offset = sound.startOffsetNanoseconds {
      parts.append("begins \(milliseconds(offset)) ms after the first picture")
    } else {
      parts.append("nothing was heard")
    }
    if let drift = sound.driftPPM { parts.append("drift \(decimal(drift, 2)) ppm, corrected") }
    if let error = sound.maxSyncErrorNanoseconds {
      parts.append("at most \(milliseconds(error)) ms off")
    }
    var lines = [parts.joined(separator: ", ")]
    for gap in sound.gaps.prefix(10) {
      lines.append(
        "gap of sound: \(gap.sampleCount) samples at "
          + "\(decimal(Double(gap.nanoseconds) / 1e9, 6)) s, \(gap.cause.rawValue)")
    }
    if sound.gaps.count > 10 { lines.append("gap of sound: and \(sound.gaps.count - 10) more") }
    return lines
  }
}
