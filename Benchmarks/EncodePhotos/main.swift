// SPDX-License-Identifier: Apache-2.0

// Encodes frames of a movie as JPEG files with Exif and a thumbnail, for the benchmark Photos.
//
//   EncodePhotos MOVIE FORMAT QUALITY ROUNDS OUT
//
// Decodes up to 8 frames into pixel buffers of FORMAT first. Prints the processor time of encoding
// one of them, in milliseconds, as the median of the rounds. Writes the last file to OUT.

import Glibc
import Overcrank

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count == 5, let quality = Int(arguments[2]), let rounds = Int(arguments[3]) else {
  print("EncodePhotos MOVIE FORMAT QUALITY ROUNDS OUT")
  exit(64)
}
let asset = try Asset(path: arguments[0])
var reader = try FrameReader(asset)
let exif = MovieExif(tags: asset.metadata)
let format = PixelFormat(rawValue: arguments[1])
var frames: [PixelBuffer] = []
for index in 0..<min(8, asset.videoTrack?.frameCount ?? 0) {
  var frame = try reader.pixelBuffer(ofFrame: index, as: format)
  frame.attachments = exif.values(at: .zero)
  frame.attachments["ExposureTime"] = "1/500"
  frames.append(frame)
}
var (times, last): ([Double], [UInt8]) = ([], [])
for _ in 0..<max(1, rounds) {
  let start = clock()
  for frame in frames { last = try frame.jpegData(quality: quality) }
  times.append(Double(clock() - start) / Double(CLOCKS_PER_SEC) * 1_000 / Double(frames.count))
}
print(times.sorted()[times.count / 2])
let file = fopen(arguments[4], "wb")
fwrite(last, 1, last.count, file)
fclose(file)
