// SPDX-License-Identifier: Apache-2.0

// Reads the codes of gray frames, for the benchmark Codes.
//
//   CodeTiming DIRECTORY
//
// DIRECTORY is that of Tests/Tools/CodeFrames. Prints one JSON object for each frame and reader: the
// file, the reader, its processor time in milliseconds, and the codes with their corners in pixels.
// The readers are the efforts of CodeReader; `crop`, which reads a known type around the code's
// corners; and `blind`, which is given no pixels.

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankRecognition

struct Label: Decodable {
  struct Code: Decodable {
    let type: String
    let corners: [[Double]]
  }
  let file: String
  let codes: [Code]
}

struct Line: Encodable {
  struct Code: Encodable {
    let type: String
    let text: String
    let corners: [[Double]]
  }
  let file: String
  let reader: String
  let ms: Double
  let codes: [Code]
}

let (width, height) = (1_280, 720)
let directory = CommandLine.arguments.dropFirst().first ?? "."

func contents(_ path: String) throws -> [UInt8] {
  guard let file = fopen(path, "rb") else { throw POSIXError.read }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  var block = [UInt8](repeating: 0, count: 1 << 20)
  while true {
    let count = fread(&block, 1, block.count, file)
    if count == 0 { return bytes }
    bytes += block[..<count]
  }
}

enum POSIXError: Error { case read }

/// A part of gray pixels as an image.
func image(
  _ pixels: ArraySlice<UInt8>, x: Int = 0, y: Int = 0, width: Int = width, height: Int = height
) throws -> PixelBuffer {
  var buffer = try PixelBufferPool(format: .gray, width: width, height: height).makePixelBuffer()
  pixels.withUnsafeBytes { pixels in
    buffer.withUnsafeMutableBytes(ofPlane: 0) { target in
      for row in 0..<height {
        let start = (y + row) * 1_280 + x
        UnsafeMutableRawBufferPointer(rebasing: target[row * width..<(row + 1) * width])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: pixels[start..<start + width]))
      }
    }
  }
  return buffer
}

func microseconds() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

func report(
  _ file: String, _ name: String, _ image: PixelBuffer, _ reader: CodeReader,
  _ effort: CodeReader.Effort
) throws {
  let start = microseconds()
  let objects = try reader.objects(in: image, effort: effort)
  let used = microseconds() - start
  let codes = objects.map { object in
    Line.Code(
      type: object.type.rawValue, text: object.stringValue ?? "",
      corners: object.corners.map {
        [$0.x * Double(image.width), $0.y * Double(image.height)]
      })
  }
  let line = Line(file: file, reader: name, ms: Double(used) / 1_000, codes: codes)
  print(String(decoding: try JSONEncoder().encode(line), as: UTF8.self))
}

let labels = try JSONDecoder().decode(
  [Label].self, from: Data(try contents("\(directory)/labels.json")))
let reader = try CodeReader()
var single: [String: CodeReader] = [:]
for type in MetadataObjectType.codes { single[type.rawValue] = try CodeReader(types: [type]) }
let blank = try image(ArraySlice([UInt8](repeating: 128, count: width * height)))

for label in labels {
  let pixels = try contents("\(directory)/\(label.file)").suffix(width * height)
  let whole = try image(pixels)
  for effort in CodeReader.Effort.allCases {
    try report(label.file, effort.rawValue, whole, reader, effort)
  }
  try report(label.file, "blind", blank, reader, .standard)
  guard label.codes.count == 1, let code = label.codes.first, let crop = single[code.type] else {
    continue
  }
  let (xs, ys) = (code.corners.map { $0[0] }, code.corners.map { $0[1] })
  let (left, right) = (xs.min() ?? 0, xs.max() ?? 0)
  let (top, bottom) = (ys.min() ?? 0, ys.max() ?? 0)
  let margin = 0.15 * max(right - left, bottom - top) + 8
  let x = max(0, Int(left - margin))
  let y = max(0, Int(top - margin))
  let part = try image(
    pixels, x: x, y: y, width: min(width, Int(right + margin)) - x,
    height: min(height, Int(bottom + margin)) - y)
  try report(label.file, "crop", part, crop, .standard)
}
