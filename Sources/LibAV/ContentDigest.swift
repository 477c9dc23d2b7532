// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
import OvercrankLinuxSystem
package import OvercrankMediaCore
import OvercrankMovieFormat

/// A SHA-256 digest, computed by libavutil.
package struct ContentDigest: ~Copyable {
  private let context: OpaquePointer

  /// The number of hexadecimal digits of a digest.
  package static let digitCount = 64

  /// Creates a digest to which no bytes have been added yet.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  package init() throws(CallFailure) {
    guard let context = av_sha_alloc() else {
      throw CallFailure("allocate", "a digest", code: CFFmpeg_ENOMEM)
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

  /// Adds the UTF-8 bytes of a text to the digest.
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
  /// The size in bytes up to which a file is read completely.
  ///
  /// A longer file is read only in parts: `edge` bytes at its start and at its end, and `sample`
  /// bytes for each sample in between.
  private static let (wholeLimit, edge, sample) = (Int64(16 << 20), 1 << 20, 4_096)
  /// The number of samples that are read between the start and the end of a longer file.
  private static let sampleCount: Int64 = 1_024

  /// Returns the digest of a file's size and content.
  ///
  /// If the file is larger than 16 MiB, only the first and the last MiB, 1024 evenly spaced samples
  /// of 4 KiB, and the index of a movie are read. On a network disk, reading a whole clip would
  /// take longer than exporting it.
  ///
  /// - Throws: `CallFailure` if the file cannot be opened or read, or memory is unavailable.
  package static func ofFile(_ path: String) throws(CallFailure) -> String {
    let movie = try MovieBoxes(opening: path, forWriting: false)
    let count = movie.byteCount
    var digest = try ContentDigest()
    digest.update("\(count)\n")
    guard count > wholeLimit else {
      try digest.update(movie.file, 0..<count)
      return digest.finish()
    }
    try digest.update(movie.file, 0..<Int64(edge))
    for number in 0..<sampleCount {
      let start = count / sampleCount * number
      try digest.update(movie.file, start..<start + Int64(sample))
    }
    try digest.update(movie.file, count - Int64(edge)..<count)
    // The index is added because the samples would probably miss a change of a single time in the
    // index.
    for box in movie.boxes() where [BoxType.movie, BoxType.fragment].contains(box.type) {
      try digest.update(movie.file, box.start..<box.end)
    }
    return digest.finish()
  }

  /// Adds a byte range of a file to the digest.
  ///
  /// - Throws: `CallFailure` with the operation "read" unless all bytes can be read.
  private mutating func update(
    _ file: borrowing RandomAccessFile, _ range: Range<Int64>
  ) throws(CallFailure) {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let bytes = file.read(Int(min(Int64(Self.edge), range.upperBound - offset)), at: offset)
      guard !bytes.isEmpty else { throw CallFailure("read", file.path, EIO) }
      update(bytes)
      offset += Int64(bytes.count)
    }
  }
}
