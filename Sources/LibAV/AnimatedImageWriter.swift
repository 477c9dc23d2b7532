// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Writes an animated image that repeats forever.
///
/// A GIF is written by libavformat. A WebP encoder returns the whole file as one packet, in which
/// this writer corrects the duration of the last frame.
package struct AnimatedImageWriter: ~Copyable {
  private let path: String
  /// The muxer of libavformat; nil for WebP.
  private var writer: FormatWriter?
  private var lastTime: Int64 = 0
  private var image: [UInt8] = []

  /// Opens an existing file for writing.
  ///
  /// - Throws: `CallFailure` with the operation "create" or "write the header of".
  package init(
    path: String, format: AnimatedImageFormat, parameters: CodecParameters
  ) throws(CallFailure) {
    self.path = path
    writer =
      format == .gif
      ? try FormatWriter(
        path: path, muxer: "gif", parameters: parameters, timescale: format.timescale) : nil
  }

  /// Writes a packet whose frame appears at the time `ticks`, in ticks of the format.
  ///
  /// - Throws: `CallFailure` with the operation "write to".
  package mutating func write(_ packet: Packet, at ticks: Int64) throws(CallFailure) {
    if writer == nil { return image += packet.withBytes { [UInt8]($0) } }
    lastTime = ticks
    try writer?.write(packet, at: ticks)
  }

  /// Completes the file, whose last frame is shown until `end`.
  ///
  /// - Throws: `CallFailure` with the operation "finish", "write to" or "close".
  package mutating func finish(at end: Int64) throws(CallFailure) {
    guard writer != nil else {
      WebPDurations.end(&image, at: end)
      let bytes = image
      return try RandomAccessFile(opening: path).write(bytes, at: 0)
    }
    writer?.setOption("final_delay", to: end - lastTime)
    try writer?.finish()
  }
}

/// Reads and changes the durations of frames in a WebP file.
package enum WebPDurations {
  /// The byte offset of each frame's duration, which is stored in three bytes.
  private static func offsets(in file: [UInt8]) -> [Int] {
    var found: [Int] = []
    // The file begins with `RIFF`, its size and `WEBP`. Chunks follow: a name, a size, and an even
    // number of bytes.
    var start = 12
    while start + 8 <= file.count {
      let size = (0..<4).reduce(0) { $0 | Int(file[start + 4 + $1]) << (8 * $1) }
      if file[start..<start + 4].elementsEqual("ANMF".utf8), start + 23 <= file.count {
        found.append(start + 20)
      }
      start += 8 + size + size % 2
    }
    return found
  }

  /// Returns the duration of each frame in milliseconds; empty for an image that is not animated.
  package static func milliseconds(in file: [UInt8]) -> [Int] {
    offsets(in: file).map { at in
      (0..<3).reduce(0) { $0 | Int(file[at + $1]) << (8 * $1) }
    }
  }

  /// Sets the duration of the last frame so that the animation ends at a time.
  ///
  /// The encoder knows only when each frame begins, so it guesses the duration of the last frame.
  static func end(_ file: inout [UInt8], at milliseconds: Int64) {
    let known = Self.milliseconds(in: file)
    guard let at = offsets(in: file).last else { return }
    let begin = known.dropLast().reduce(0, +)
    let duration = min(max(Int(clamping: milliseconds) - begin, 0), 0xFF_FFFF)
    for byte in 0..<3 { file[at + byte] = UInt8(truncatingIfNeeded: duration >> (8 * byte)) }
  }
}

/// The file formats of animated images.
package enum AnimatedImageFormat: String, Hashable, Sendable {
  case gif
  case webp

  /// The format that a file name extension selects.
  ///
  /// Nil for any other extension, and without an extension.
  package init?(path: String) {
    guard let extent = path.fileExtension else { return nil }
    self.init(rawValue: extent)
  }

  /// FFmpeg's name of the encoder for this format.
  package var encoderName: String {
    switch self {
    case .gif: "gif"
    case .webp: "libwebp_anim"
    }
  }

  /// The number of ticks per second for the times in the file.
  package var timescale: Int32 {
    switch self {
    case .gif: 100
    case .webp: 1_000
    }
  }

  /// The highest frame rate at which browsers play an animation at its real speed.
  ///
  /// Browsers show frames of 10 ms or less for 100 ms.
  package var highestFrameRate: Int64 {
    switch self {
    case .gif: 50
    case .webp: 90
    }
  }

  /// Whether the linked FFmpeg contains the encoder for this format.
  package var isSupported: Bool { avcodec_find_encoder_by_name(encoderName) != nil }
}
