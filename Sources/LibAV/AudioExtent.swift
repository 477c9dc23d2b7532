// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore

/// The first sample and the number of samples of an audio track, on the time axis of its file.
package struct AudioExtent: Hashable, Sendable {
  package let start: Int64
  package let count: Int64

  package init(start: Int64, count: Int64) { (self.start, self.count) = (start, count) }
}

/// Determines the extent of an audio track whose times are rounded to units coarser than a sample.
///
/// Matroska and FLV round times to milliseconds. Each packet begins where the samples before it end, so
/// the times of all packets together limit the start more closely than one of them. Lengths follow from
/// the numbers of samples in the packets, not from rounded times.
package struct AudioExtentFinder {
  private let parameters: CodecParameters
  /// A tick and a sample, in units in which both are whole.
  private let tick: Int128
  private let sample: Int128
  /// The encoder delay in the same units, and as libavformat subtracts it from times.
  private let delay: (exact: Int128, rounded: Int128)
  private var first: Int128?
  /// The least and the greatest start of the track by the time of one packet.
  private var (least, greatest): (Int128, Int128) = (.max, .min)
  private var count: Int64 = 0
  /// The samples at the end of the last packet that are no part of the audio.
  private var endPadding: Int64 = 0
  private var isKnown = true

  /// Makes a finder; nil for a track whose times are exact in samples.
  package init?(_ track: TrackFormat, in container: String) {
    parameters = track.parameters
    let (rate, base) = (Int128(track.parameters.sampleRate), track.timeBase)
    guard track.kind == .audio, rate > 0, rate < 1 << 24, base.numerator < 1 << 32,
      base.denominator < 1 << 32, base.denominator % rate != 0
    else { return nil }
    (tick, sample) = (base.numerator * rate, base.denominator)
    // libavformat rounds the delay that Matroska states to ticks.
    let padding = Int128(track.parameters.initialPadding) * sample
    delay =
      container.hasPrefix("matroska") ? (padding, (padding + tick / 2) / tick * tick) : (0, 0)
  }

  /// Adds the next packet of the track.
  package mutating func add(_ packet: Packet) {
    guard isKnown, let ticks = packet.pts, ticks.magnitude < 1 << 53,
      let length = packet.sampleCount(parameters)
    else {
      isKnown = false
      return
    }
    let start = Int128(ticks) * tick + delay.rounded - delay.exact - Int128(count) * sample
    first = first ?? start
    (least, greatest) = (min(least, start), max(greatest, start))
    count += length
    endPadding = packet.endPadding
  }

  /// The extent; nil if the numbers of samples are unknown or contradict the times.
  package var extent: AudioExtent? {
    guard isKnown, let first, greatest - least <= 2 * tick, count > endPadding else { return nil }
    // Most muxers round times to the nearest tick. A few round them down, so a start at 0 is kept.
    let (earliest, latest) = (greatest - tick / 2, least + tick / 2)
    let start =
      first == -delay.exact || earliest > latest ? first : min(max(first, earliest), latest)
    let half = start >= 0 ? sample / 2 : -sample / 2
    return AudioExtent(start: Int64(clamping: (start + half) / sample), count: count - endPadding)
  }
}

extension Packet {
  /// The number of samples per channel; nil if it cannot be known without decoding.
  fileprivate func sampleCount(_ parameters: CodecParameters) -> Int64? {
    switch parameters.codecID {
    case AV_CODEC_ID_ALAC: return alacSampleCount(parameters.extradata)
    case AV_CODEC_ID_OPUS: return withBytes(Self.opusSampleCount)
    default:
      let count = av_get_audio_frame_duration2(parameters.pointer, Int32(clamping: byteCount))
      return count > 0 ? Int64(count) : nil
    }
  }

  /// The samples at the end that a decoder discards.
  fileprivate var endPadding: Int64 {
    var size = 0
    guard let data = av_packet_get_side_data(pointer, AV_PKT_DATA_SKIP_SAMPLES, &size), size >= 8
    else { return 0 }
    return (0..<4).reduce(Int64(0)) { $0 | Int64(data[4 + $1]) << Int64(8 * $1) }
  }

  /// The number of samples of ALAC: that in the packet, or that of all full packets in the headers.
  private func alacSampleCount(_ headers: [UInt8]) -> Int64? {
    // A header of 36 bytes is an atom; its content has 24 bytes.
    let start = headers.count >= 36 ? 12 : 0
    guard headers.count >= start + 24, byteCount >= 7 else { return nil }
    return withBytes { bytes in
      // 3 bits for the element, 4 for its number, 12 unused ones. Then a flag for a number of samples,
      // and 3 bits before that number.
      guard bytes[2] >> 4 & 1 == 1 else {
        return headers[start..<start + 4].reduce(Int64(0)) { $0 << 8 | Int64($1) }
      }
      let word = bytes[2..<7].reduce(Int64(0)) { $0 << 8 | Int64($1) }
      return word >> 1 & 0xFFFF_FFFF
    }
  }

  /// The number of samples of Opus at 48 kHz (RFC 6716, 3.1).
  private static func opusSampleCount(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    guard let head = bytes.first else { return nil }
    let (mode, step) = (head >> 3, Int64(head >> 3 & 3))
    let length: Int64 =
      switch mode {
      case 0..<12: step == 3 ? 2_880 : 480 << step
      case 12..<16: 480 << (step & 1)
      default: 120 << step
      }
    switch head & 3 {
    case 0: return length
    case 1, 2: return 2 * length
    default: return bytes.count > 1 ? Int64(bytes[1] & 0x3F) * length : nil
    }
  }
}
