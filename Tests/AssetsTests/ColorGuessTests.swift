// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// The color matrix and the color range of frames that are read as RGB or YUV.
struct ColorGuessTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// The first pixel of a movie whose frames all have one YUV color.
  private func pixel(
    _ size: String, _ tags: [String], as format: PixelFormat = PixelFormat(rawValue: "rgb24"),
    isFullRange: Bool = false, _ coding: [String] = ["-c:v", "ffv1"]
  ) async throws -> [UInt8] {
    let path = directory.file("clip.mkv")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "color=gray:s=\(size):r=25,format=yuv420p,geq=120:90:200"]
        + ["-frames:v", "1"] + coding + tags)
    var reader = try FrameReader(Asset(path: path))
    var writer = try RawFrameWriter(format, isFullRange: isFullRange)
    return Array(try writer.data(of: 0, from: &reader).prefix(3))
  }

  @Test func `Untagged frames get the color matrix that players assume`() async throws {
    func tags(_ matrix: String) -> [String] { ["-colorspace", matrix] }
    let bt601 = try await pixel("64x48", tags("smpte170m"))
    let bt709 = try await pixel("64x48", tags("bt709"))
    #expect(bt601 != bt709)
    #expect(try await pixel("64x48", []) == bt601)
    #expect(try await pixel("640x576", []) == bt601)
    #expect(try await pixel("64x720", []) == bt709)
    #expect(try await pixel("1280x48", []) == bt709)
    #expect(try await pixel("1280x48", tags("smpte170m")) == bt601)
  }

  @Test func `Raw frames have the requested full or limited color range`() async throws {
    let yuv = PixelFormat(rawValue: "yuv420p")
    let coding = ["-pix_fmt", "yuvj420p", "-c:v", "ffv1", "-color_range", "pc"]
    let full = try await pixel("64x48", [], as: yuv, isFullRange: true, coding)
    let limited = try await pixel("64x48", [], as: yuv, coding)
    let expected = Int((Double(full[0]) * 219 / 255 + 16).rounded())
    #expect(abs(Int(limited[0]) - expected) <= 1 && limited[0] != full[0])
    // The source frame has a luma of 120 in video range.
    #expect(abs(Int(full[0]) - 121) <= 1)
  }
}
