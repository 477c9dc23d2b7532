// SPDX-License-Identifier: Apache-2.0

// Retimes raw audio (interleaved 32-bit floats) with the library alone, for the benchmarks Pitch
// and Onsets.
//
//   RetimeAudio ALGORITHM[:JOBS] RATE CHANNELS IN OUT START+COUNT@SPEED...
//
// JOBS pieces are processed in parallel, by default one. Each leg plays COUNT samples of the input
// from START on at SPEED, after the previous leg. SPEED is source samples per output sample: 1/8 is
// slow motion.

import Glibc
import Overcrank

/// An error in the command line or in a file.
struct UsageError: Error, CustomStringConvertible {
  let description: String
}

/// Reads all interleaved samples of a file.
func interleaved(in path: String) throws -> [Float] {
  guard let file = fopen(path, "rb") else { throw UsageError(description: "no file \(path)") }
  defer { fclose(file) }
  fseek(file, 0, SEEK_END)
  let count = max(0, ftell(file)) / 4
  rewind(file)
  return [Float](unsafeUninitializedCapacity: count) { memory, got in
    got = fread(memory.baseAddress, 4, count, file)
  }
}

/// Parses legs such as `0+48000@1/8` into consecutive mappings.
func mappings(_ legs: [String], sampleRate: Int32) throws -> [TimeMapping] {
  var end = MediaTime.zero
  return try legs.map { leg in
    let fields = leg.split { "+@/".contains($0) }.compactMap { Int64($0) }
    guard (3...4).contains(fields.count) else {
      throw UsageError(description: "\(leg) is not START+COUNT@SPEED")
    }
    let below = fields.count == 4 ? fields[3] : 1
    let speed = try Speed(Rational(Int128(fields[2]), over: Int128(below)))
    let source = try TimeRange(
      start: MediaTime(fields[0], over: sampleRate),
      duration: MediaTime(fields[1], over: sampleRate))
    let length = try MediaTime(source.duration / speed.fraction)
    defer { end = MediaTime(exactly: end + length) ?? end }
    return try TimeMapping(source: source, target: TimeRange(start: end, duration: length))
  }
}

func run(_ arguments: [String]) throws {
  let words = arguments.count > 6 ? arguments[1].split(separator: ":").map(String.init) : []
  guard let name = words.first, let algorithm = AudioTimePitchAlgorithm(rawValue: name),
    let jobs = words.count > 1 ? Int(words[1]) : 1,
    let sampleRate = Int32(arguments[2]), let channels = Int(arguments[3]), channels > 0
  else {
    throw UsageError(
      description: "RetimeAudio ALGORITHM RATE CHANNELS IN OUT START+COUNT@SPEED...")
  }
  let retimer = try AudioRetimer(
    algorithm: algorithm, sampleRate: Int(sampleRate), channelCount: channels)
  let input = try interleaved(in: arguments[4])
  let length = Int64(input.count / channels)
  guard let output = fopen(arguments[5], "wb") else {
    throw UsageError(description: "\(arguments[5]) cannot be written")
  }
  let report = try retimer.render(
    mappings: mappings(Array(arguments[6...]), sampleRate: sampleRate), parallelism: jobs,
    read: { start, count in
      let first = max(0, min(-start, Int64(count)))
      let (before, there) = (Int(first), Int(max(first, min(Int64(count), length - start)) - first))
      return input.withUnsafeBufferPointer { input in
        (0..<channels).map { channel in
          [Float](unsafeUninitializedCapacity: count) { plane, filled in
            plane.initialize(repeating: 0)
            var position = (Int(start) + before) * channels + channel
            for index in before..<before + there {
              plane[index] = input[position]
              position += channels
            }
            filled = count
          }
        }
      }
    },
    write: { planes in
      let count = planes[0].count
      let block = [Float](unsafeUninitializedCapacity: count * channels) { block, filled in
        for (channel, plane) in planes.enumerated() {
          var position = channel
          for sample in plane {
            block.initializeElement(at: position, to: sample)
            position += channels
          }
        }
        filled = count * channels
      }
      guard fwrite(block, 4, block.count, output) == block.count else {
        throw UsageError(description: "\(arguments[5]) could not be written")
      }
    })
  guard fclose(output) == 0, report.lengthErrorSamples == 0 else {
    throw UsageError(description: "\(report.lengthErrorSamples) samples are missing")
  }
}

do { try run(CommandLine.arguments) } catch {
  let text = "\(error)\n"
  _ = write(2, text, text.utf8.count)
  exit(1)
}
