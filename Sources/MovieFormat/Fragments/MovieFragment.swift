// SPDX-License-Identifier: Apache-2.0

/// What a fragment of a movie holds, and the `moof` box that says so (ISO/IEC 14496-12, 8.8).
struct MovieFragment {
  /// Where the fragment begins.
  let start: Int64
  /// When its first picture is shown, in ticks of the first track.
  let ticks: Int64
  /// The samples, by track.
  private var samples: [[StoredSample]]
  /// Bytes that the box takes.
  private var headByteCount: Int
  private var end: Int64 = -1
  private var lastTrack = -1

  private static let runBytes = 20
  private static let sampleBytes = 12
  /// A box that readers skip, with the check of what stands before it.
  private static let paddingBytes = 12

  /// Bytes of the box before any sample of `trackCount` tracks.
  private static func emptyBytes(trackCount: Int) -> Int { 8 + 16 + trackCount * (8 + 16 + 20) }

  /// Bytes to keep for the box and what is skipped behind it.
  static func maximumHeadBytes(trackCount: Int, sampleCount: Int) -> Int {
    emptyBytes(trackCount: trackCount) + sampleCount * (sampleBytes + runBytes) + paddingBytes
  }

  init(start: Int64, ticks: Int64, trackCount: Int) {
    self.start = start
    self.ticks = ticks
    samples = Array(repeating: [], count: trackCount)
    headByteCount = Self.emptyBytes(trackCount: trackCount)
  }

  /// Whether the box of one more sample fits into so many bytes.
  func hasSpace(in byteCount: Int) -> Bool {
    headByteCount + Self.runBytes + Self.sampleBytes + Self.paddingBytes <= byteCount
  }

  /// Adds a sample; those of a track that lie one behind the other make a run.
  mutating func append(_ sample: StoredSample) {
    let track = sample.track
    if track != lastTrack || sample.position != end { headByteCount += Self.runBytes }
    headByteCount += Self.sampleBytes
    lastTrack = track
    end = sample.position + Int64(sample.byteCount)
    samples[track].append(sample)
  }

  /// Sets how long the last sample of a track lasts.
  mutating func endLast(ofTrack track: Int, atTicks ticks: Int64) {
    guard let last = samples[track].last else { return }
    samples[track][samples[track].count - 1].duration = ticks &- last.ticks
  }

  /// Whether it holds no sample; it then has no `moof` either.
  var isEmpty: Bool { samples.allSatisfy(\.isEmpty) }

  /// The `moof` box, and what readers skip behind it, in so many bytes; the first four of the
  /// latter are the check of the former.
  ///
  /// - Parameters:
  ///   - number: The fragment's place in the file, from 1.
  ///   - space: The bytes in all.
  /// - Returns: The bytes of both.
  func head(number: UInt32, space: Int) -> [UInt8] {
    var head = BoxBytes()
    if isEmpty {
      head.free(space)
    } else {
      writeHead(number: number, into: &head)
      let check = head.bytes.withUnsafeBytes { CRC32.checksum(of: $0) }
      head.free(space - head.bytes.count, holding: check)
    }
    return head.bytes
  }

  /// Adds the `moof` box; `number` is the fragment's place in the file, from 1.
  private func writeHead(number: UInt32, into head: inout BoxBytes) {
    head.box(BoxType.fragment) { box in
      box.fullBox(BoxType.fragmentHeader, version: 0, flags: 0) { $0.append(number) }
      for (track, samples) in samples.enumerated() {
        guard let first = samples.first else { continue }
        box.box(BoxType.trackFragment) { box in
          // Places of runs are told from the beginning of this box.
          box.fullBox(BoxType.trackFragmentHeader, version: 0, flags: 0x02_0000) {
            $0.append(UInt32(track + 1))
          }
          box.fullBox(BoxType.trackFragmentTime, version: 1, flags: 0) { $0.append(first.ticks) }
          for run in runs(of: samples) { write(samples[run], into: &box) }
        }
      }
    }
  }

  /// Stretches of samples that lie one behind the other.
  private func runs(of samples: [StoredSample]) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    var first = 0
    for index in samples.indices.dropFirst() {
      let before = samples[index - 1]
      if before.position + Int64(before.byteCount) != samples[index].position {
        runs.append(first..<index)
        first = index
      }
    }
    runs.append(first..<samples.count)
    return runs
  }

  private func write(_ run: ArraySlice<StoredSample>, into box: inout BoxBytes) {
    // The place, and of each sample duration, size and flags.
    box.fullBox(BoxType.trackRun, version: 0, flags: 0x01 | 0x100 | 0x200 | 0x400) { box in
      box.append(UInt32(run.count))
      box.append(Int32(clamping: (run.first?.position ?? start) - start))
      for sample in run {
        box.append(UInt32(clamping: sample.duration))
        box.append(UInt32(clamping: sample.byteCount))
        // Depends on no other sample; or depends on others, and no place to begin.
        box.append(sample.isKeyFrame ? UInt32(0x0200_0000) : UInt32(0x0101_0000))
      }
    }
  }
}
