// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Projects that `retime` writes, and the export plans that `edit` makes from them.
@Suite(.serialized)
struct ContractProjectTests {
  /// Each project with the take and the options of `retime`.
  private static let projects = [
    ("eighth", "mjpeg.mov", "--speed 1/8"), ("decimal", "mjpeg.mov", "--speed 0.3"),
    ("double", "drops.mov", "--speed 2"), ("range", "h264.mov", "--range 0.1..0.3 --speed 1/8"),
    (
      "ranges", "h264.mov",
      "--range 0..0.1 --speed 2 --range 0.2+0.1 --speed 1/3 --range 24f..-0.1s --speed 12.5%"
    ),
    ("ramp-linear", "h264.mov", "--ramp '0.1=1 0.2=1/8 0.4=1/8 0.5=1' --easing linear"),
    ("ramp-eased", "h264.mov", "--ramp '0.1=1 0.2=1/8 0.4=1/8 0.5=1' --easing eased"),
    ("jump", "h264.mov", "--ramp '0.1=1 0.1=1/4 0.5=1/4'"),
    ("impact", "h264.mov", "--preset impact --at 0.3"),
    ("landing", "h264.mov", "--preset landing --at 0.3"),
    ("freeze", "h264.mov", "--preset freeze --at 0.3"),
    ("pulse", "h264.mov", "--preset pulse --at 0.3"),
    ("playback", "drops.mov", "--playback-fps 30"),
    ("sidecar", "h264.mov", "--sidecar phone.aae"),
  ]
  private static let sidecar = "inputs/phone.aae"

  static let fixtures =
    [sidecar] + projects.flatMap { ["projects/\($0.0).otio.gz", "projects/\($0.0).txt"] }

  @Test(arguments: projects.indices)
  func `Written project files match their fixtures`(index: Int) async throws {
    let (name, take, options) = Self.projects[index]
    let (scratch, project) = (try Scratch(), "\(name).otio")
    try await ContractTakes.unpack(String(take.dropLast(4)), into: scratch)
    try FileManager.default.copyItem(
      atPath: ContractFixtures.path(Self.sidecar), toPath: scratch.file("phone.aae"))

    var transcript = Transcript(in: scratch)
    try await transcript.slowmo("retime \(take) -o \(project) \(options)")
    let written = try String(contentsOfFile: scratch.file(project), encoding: .utf8)
    let old = try await ContractFixtures.check(written, isPacked: "projects/\(project)")

    _ = try scratch.write(Array(old.utf8), as: project)
    try await transcript.slowmo("edit \(project) -o film.mov --copy --dry-run --json")
    try await transcript.slowmo("edit \(project) -o film.mp4 --fps 30 --dry-run --json")
    // Reading a project and writing it again changes only its name.
    try await transcript.slowmo("edit \(project) -o again.otio")
    let again = try String(contentsOfFile: scratch.file("again.otio"), encoding: .utf8)
    #expect(again.replacing("again.otio", with: project) == old)
    try ContractFixtures.check(transcript.text, is: "projects/\(name).txt")
  }
}
