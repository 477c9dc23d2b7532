// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A digest of a video track: the number and the sizes of its samples, and the times from frame to
/// frame.
///
/// A time map carries it to show that it belongs to the file. Another program that cuts, joins or
/// retimes a movie changes it. A program that only copies the track into another MOV or MP4 file does
/// not: neither the track's timescale nor the duration of its last frame counts.
package struct SampleDigest: Hashable, Sendable {
  /// The digest.
  package private(set) var rawValue: UInt64 = 0x6F76_6572_6372_616E
  /// The number of hexadecimal digits of ``text``.
  package static let digitCount = 16

  /// Computes the digest of a track of a movie; nil if the sizes of the samples cannot be read.
  ///
  /// - Parameters:
  ///   - track: The index of the track in the file, from 0.
  ///   - file: The movie.
  ///   - ticks: The presentation times of the frames that are shown, in ascending order.
  ///   - timescale: The number of ticks per second.
  package init?(
    ofTrack track: Int, in file: borrowing MovieBoxes, ticks: [Int64], timescale: Int32
  ) {
    guard let (_, bytes) = file.movie(in: file.boxes()), let box = Box.track(track, in: bytes),
      let table = box.sampleTable(in: bytes)?.first(BoxType.sampleSizes, in: bytes),
      add(sizes: bytes[Int(table.start + table.headBytes)..<Int(table.end)])
    else { return nil }
    add(ticks, timescale)
  }

  /// Computes the digest of a track from the sizes of its samples in decode order.
  package init(sizes: [Int], ticks: [Int64], timescale: Int32) {
    add(sizes: sizes.lazy.map { UInt64(clamping: $0) })
    add(ticks, timescale)
  }

  /// Computes a digest of the frames' times alone, for files of other forms.
  package init(ticks: [Int64], timescale: Int32) { add(ticks, timescale) }

  /// Reads a digest from 16 hexadecimal digits.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == Self.digitCount, let number = UInt64(text, radix: 16) else {
      return nil
    }
    rawValue = number
  }

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The digest as 16 hexadecimal digits.
  package var text: String {
    let digits = String(rawValue, radix: 16)
    return String(repeating: "0", count: Self.digitCount - digits.count) + digits
  }

  /// Adds a number to the digest.
  package mutating func add(_ number: UInt64) {
    rawValue = (rawValue ^ number) &* 0x9E37_79B9_7F4A_7C15
    rawValue ^= rawValue >> 29
  }

  /// Adds the contents of an `stsz` box; returns false if it is malformed.
  private mutating func add(sizes box: ArraySlice<UInt8>) -> Bool {
    let start = box.startIndex
    guard box.count >= 12 else { return false }
    func number(_ offset: Int) -> UInt64 {
      Box.number(box[(start + offset)..<(start + offset + 4)])
    }
    let (common, count) = (number(4), number(8))
    guard common == 0 else {
      addRun(count, of: common)
      return true
    }
    guard count <= UInt64((box.count - 12) / 4) else { return false }
    box.withUnsafeBytes { bytes in
      let sizes = (0..<Int(count)).lazy.map { index in
        bytes.loadUnaligned(fromByteOffset: 12 + 4 * index, as: UInt32.self)
      }
      add(sizes: sizes.map { UInt64(UInt32(bigEndian: $0)) })
    }
    return true
  }

  /// Adds the sizes of samples, in runs of equal ones.
  private mutating func add(sizes: some Sequence<UInt64>) {
    var run: (size: UInt64, count: UInt64) = (0, 0)
    for size in sizes {
      if size != run.size {
        addRun(run.count, of: run.size)
        run = (size, 0)
      }
      run.count += 1
    }
    addRun(run.count, of: run.size)
  }

  private mutating func add(_ ticks: [Int64], _ timescale: Int32) {
    add(UInt64(ticks.count))
    var run: (step: Int64, count: UInt64) = (0, 0)
    // Steps mostly alternate between few values, and reducing a fraction is slow.
    var known = [(step: Int64, seconds: Rational)](repeating: (0, 0), count: 64)
    func seconds(_ step: Int64) -> Rational {
      let slot = Int(truncatingIfNeeded: step & 63)
      if known[slot].step != step {
        known[slot] = (step, MediaTime(step, over: max(1, timescale)).seconds)
      }
      return known[slot].seconds
    }
    for (previous, next) in zip(ticks, ticks.dropFirst()) {
      let step = next &- previous
      if step != run.step {
        addRun(run.count, of: seconds(run.step))
        run = (step, 0)
      }
      run.count += 1
    }
    addRun(run.count, of: seconds(run.step))
  }

  private mutating func addRun(_ count: UInt64, of seconds: Rational) {
    guard count > 0 else { return }
    add(UInt64(truncatingIfNeeded: seconds.numerator))
    addRun(count, of: UInt64(truncatingIfNeeded: seconds.denominator))
  }

  private mutating func addRun(_ count: UInt64, of number: UInt64) {
    guard count > 0 else { return }
    add(number)
    add(count)
  }
}
