// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import Testing

/// The digest of the content of a file.
///
/// A long file is only sampled.
struct ContentDigestTests {
  /// Returns a box of zeros.
  private func box(_ type: String, _ count: Int) -> [UInt8] {
    let size = withUnsafeBytes(of: UInt32(count).bigEndian) { [UInt8]($0) }
    return size + Array(type.utf8) + [UInt8](repeating: 0, count: count - 8)
  }

  @Test func `A movie digest changes with any index or sampled media byte`() throws {
    let path = NSTemporaryDirectory() + "/overcrank-\(UUID().uuidString).mov"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let (index, media) = (10 << 20, 10 << 20)
    let movie = box("moov", index) + box("mdat", media)
    func digest(changing offset: Int) throws -> String {
      var changed = movie
      changed[offset] ^= 1
      try Data(changed).write(to: URL(fileURLWithPath: path))
      return try ContentDigest.ofFile(path)
    }
    // The digest samples 4096 bytes in every 20480.
    let between = 8_000 + 20_480 * 100
    try Data(movie).write(to: URL(fileURLWithPath: path))
    let whole = try ContentDigest.ofFile(path)
    #expect(try digest(changing: between) != whole)
    #expect(try digest(changing: between + index) == whole)
    #expect(try digest(changing: 20_480 * 700) != whole)
  }

  @Test func `Digesting an unreadable file fails with the read error`() {
    // Reading a directory with read(2) fails.
    #expect { try ContentDigest.ofFile(NSTemporaryDirectory()) } throws: {
      ($0 as? CallFailure)?.operation == "read"
    }
  }
}
