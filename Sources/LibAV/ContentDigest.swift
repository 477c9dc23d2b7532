// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem

/// A SHA-256 digest, computed by libavutil.
package struct ContentDigest: ~Copyable {
  private let context: OpaquePointer

  /// The number of hexadecimal digits of a digest.
  package static let digitCount = 64

  /// Starts the digest of no bytes.
  ///
  /// - Throws: `LibAVError` if there is no memory.
  package init() throws(LibAVError) {
    guard let context = av_sha_alloc() else {
      throw LibAVError("allocate", "a digest", code: CFFmpeg_ENOMEM)
    }
    self.context = context
    av_sha_init(context, 256)
  }

  deinit { av_free(UnsafeMutableRawPointer(context)) }

  /// Adds bytes.
  package mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return }
      av_sha_update(context, start, buffer.count)
    }
  }

  /// Adds the bytes of a text.
  package mutating func update(_ text: String) { update(Array(text.utf8)) }

  /// Returns the digest in hexadecimal digits; no bytes can be added afterwards.
  package mutating func finish() -> String {
    var digest = [UInt8](repeating: 0, count: Self.digitCount / 2)
    digest.withUnsafeMutableBufferPointer { buffer in
      if let start = buffer.baseAddress { av_sha_final(context, start) }
    }
    return digest.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }
    .joined()
  }
}

extension ContentDigest {
  /// The longest file that is read completely, in bytes, and the length of a sample of a longer one.
  private static let (wholeLimit, edge, sample) = (Int64(16 << 20), 1 << 20, 4_096)
  /// The number of samples between the start and the end of a long file.
  private static let sampleCount: Int64 = 1_024

  /// Returns the digest of a file's size and content.
  ///
  /// Of a file above 16 MiB, only the first and the last MiB are read, and 1024 evenly spaced
  /// samples of 4 KiB. Whole clips on a network disk would take longer to read than to export.
  ///
  /// - Throws: `SystemError` if the file cannot be opened, `LibAVError` if there is no memory.
  package static func ofFile(_ path: String) throws -> String {
    let file = try RandomAccessFile(opening: path, forWriting: false)
    let count = file.count()
    var digest = try ContentDigest()
    digest.update("\(count)\n")
    guard count > wholeLimit else {
      var offset: Int64 = 0
      while offset < count {
        let bytes = file.read(edge, at: offset)
        if bytes.isEmpty { break }
        digest.update(bytes)
        offset += Int64(bytes.count)
      }
      return digest.finish()
    }
    digest.update(file.read(edge, at: 0))
    for number in 0..<sampleCount {
      digest.update(file.read(sample, at: count / sampleCount * number))
    }
    digest.update(file.read(edge, at: count - Int64(edge)))
    return digest.finish()
  }
}
