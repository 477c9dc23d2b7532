// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Clips with undecodable frames or a missing end.
struct DamagedFrameTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A clip of JPEG frames.
  ///
  /// The packets of the given frames contain only zeros.
  private func damaged(_ frames: [Int]) async throws -> Asset {
    let path = directory.file("plain.mov")
    try await FFmpeg.makeClip(path, frames: 30, ["-c:v", "mjpeg"])
    var movie = try bytes(of: path)
    let packets = try await FFmpeg.probe(path, "packet=pos,size", stream: "v:0")
    for frame in frames {
      let numbers = packets[frame].split(separator: ",").compactMap { Int($0) }
      let (size, start) = (numbers[0], numbers[1])
      movie.replaceSubrange(start..<start + size, with: repeatElement(0, count: size))
    }
    return try Asset(path: directory.write(movie, as: "damaged.mov"))
  }

  private func export(
    _ asset: Asset, _ policy: UndecodableFramePolicy
  ) throws -> ExportReport {
    var settings = ExportSettings(
      path: directory.file("\(policy).mov"), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = .mjpeg }
    settings.undecodableFrames = policy
    return try ExportSession(Composition(asset), of: asset).export(settings)
  }

  private func hashes(_ path: String) async throws -> [String] {
    try await CopyJudge.frames(of: path, countsHidden: true).map(\.hash)
  }

  @Test func `An undecodable frame is refused or held or skipped by policy`() async throws {
    let asset = try await damaged([7])
    let error = #expect(throws: MediaError.self) { try export(asset, .stop) }
    #expect(error?.code.rawValue == "invalid_data")
    #expect(error?.message.contains("frame 7") == true)

    let held = try export(asset, .hold)
    #expect(held.undecodable.map(\.index) == [7] && held.framesEncoded == 30)
    #expect(held.undecodable.first?.time.seconds == (Rational(7, over: 30)))
    let shown = try await hashes(held.path)
    #expect(shown.count == 30 && shown[7] == shown[6])
    #expect(Set(shown).count == 29)

    let skipped = try export(asset, .skip)
    #expect(skipped.undecodable.map(\.index) == [7] && skipped.framesEncoded == 29)
    let frames = try await CopyJudge.frames(of: skipped.path, countsHidden: true)
    let expected = (0..<30).filter { $0 != 7 }.map { Rational($0, over: 30) }
    #expect(frames.map(\.time) == expected)
    #expect(frames.map(\.hash) == shown.enumerated().filter { $0.offset != 7 }.map(\.element))
  }

  @Test func `An undecodable first or last frame shows the nearest frame`()
    async throws
  {
    let asset = try await damaged([0, 1, 12, 13, 29])
    for policy in [UndecodableFramePolicy.hold, .skip] {
      let report = try export(asset, policy)
      #expect(report.undecodable.map(\.index) == [0, 1, 12, 13, 29])
      let shown = try await hashes(report.path)
      #expect(shown.count == (policy == .hold ? 30 : 27))
      #expect(shown[0] == shown[1] || policy == .skip)
      #expect(shown.last == shown.dropLast().last)
      #expect(report.duration.seconds == Rational(1))
    }
  }

  @Test func `No damage policy can export a clip without decodable frames`() async throws {
    let asset = try await damaged(Array(0..<30))
    for policy in UndecodableFramePolicy.allCases {
      #expect(throws: MediaError.self) { try export(asset, policy) }
    }
  }

  /// A clip with its index in front, truncated in the media data.
  private func cutOff(_ options: [String]) async throws -> (whole: String, cut: String) {
    let whole = directory.file("whole.mp4")
    try await FFmpeg.makeClip(whole, frames: 60, options + ["-movflags", "+faststart"])
    let movie = try bytes(of: whole)
    return (whole, try directory.write(Array(movie.prefix(movie.count * 6 / 10)), as: "cut.mp4"))
  }

  @Test(arguments: [
    ["-c:v", "libx264", "-bf", "2", "-g", "20"], ["-c:v", "libx264", "-bf", "0"],
    ["-c:v", "mjpeg"],
  ])
  func `The readable part of a truncated file is exported`(
    options: [String]
  ) async throws {
    let (whole, cut) = try await cutOff(options)
    let error = #expect(throws: MediaError.self) { try Asset(path: cut) }
    #expect(error?.message.contains("of 60 frames can be read") == true)
    let asset = try Asset(path: cut, allowsTruncation: true)
    let truncation = try #require(asset.truncation)
    let count = try #require(asset.videoTrack).frameCount
    #expect(truncation.statedFrameCount == 60 && truncation.readableFrameCount == count)
    #expect((10..<59).contains(count))
    #expect(try Asset(path: whole, allowsTruncation: true).truncation == nil)

    let settings = ExportSettings(path: directory.file("there.mov"), mode: .passthrough())
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(report.framesCopied == Int64(count))
    // Some of the last frames may need a frame that was cut off.
    let wanted = try await CopyJudge.frames(of: whole, countsHidden: true)
    let made = try await CopyJudge.frames(of: report.path, countsHidden: true)
    #expect(made.count <= count && made.count > count - 4)
    #expect(made.dropLast(3).elementsEqual(wanted.prefix(made.count - 3)))
  }
}
