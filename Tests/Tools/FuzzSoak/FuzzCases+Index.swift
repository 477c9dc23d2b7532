// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport

extension FuzzCases {
  /// The error for a saved index whose frames differ from those of the movie.
  struct WrongIndex: Error, CustomStringConvertible {
    let description: String
  }

  /// Opens a movie that has a damaged saved index, and decodes frames by that index.
  ///
  /// Every second index gets a valid checksum again, so that its numbers are read.
  func damagedIndex(_ random: inout SeededGenerator) throws -> String {
    let movie = movies[Int.random(in: 0..<movies.count, using: &random)]
    let path = try directory.write(movie.bytes, as: "i-\(movie.name)")
    // A damaged index of an earlier case may begin like another kind of file, which would not be
    // replaced.
    try? FileManager.default.removeItem(atPath: "\(path).frameindex")
    let plain = try Asset(path: path, keepsIndex: true)
    guard let index = plain.keptIndex, index.isWritten else {
      throw WrongIndex(description: "no index was written")
    }
    var changed = try bytes(of: index.path)
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      let position = Int.random(in: 0..<changed.count, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: changed[position] = .random(in: 0...255, using: &random)
      case 1: changed[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 2:
        let extreme: [UInt8] =
          [[0, 0, 0, 0, 0, 0, 0, 0x80], [255, 255, 255, 255, 255, 255, 255, 0x7F]]
          .randomElement(using: &random) ?? []
        for (offset, byte) in extreme.enumerated() where position + offset < changed.count {
          changed[position + offset] = byte
        }
      default: changed.removeSubrange(position..<min(changed.count, position + 40))
      }
      if changed.isEmpty { break }
    }
    if Bool.random(using: &random), changed.count > 4 {
      changed.removeLast(4)
      let check = changed.withUnsafeBytes { CRC32.checksum(of: $0) }
      withUnsafeBytes(of: check.littleEndian) { changed.append(contentsOf: $0) }
    }
    _ = try directory.write(changed, as: "i-\(movie.name).frameindex")
    let asset = try Asset(path: path, keepsIndex: true)
    _ = asset.frameTimingRows()
    if asset.keptIndex?.isUsed == false,
      asset.videoTrack?.frames.entries != plain.videoTrack?.frames.entries
    {
      throw WrongIndex(description: "a refused index changed the frames")
    }
    if let frames = asset.videoTrack?.frames {
      var reader = try FrameReader(asset)
      for _ in 0..<3 {
        let number = Int.random(in: 0..<frames.entries.count, using: &random)
        do throws(MediaError) { _ = try reader.mediaFrame(at: number) } catch { continue }
      }
    }
    return "index \(asset.keptIndex?.refusal?.rawValue ?? "used")"
  }
}
