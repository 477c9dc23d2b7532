// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// A source is identified by its file, whichever path leads to it.
struct SourceIdentityTests {
  @Test(arguments: ["dotted", "linked"])
  func `An asset is recognized under another path of the same file`(name: String) throws {
    let directory = try Scratch()
    let asset = try Asset.made(.constant(30, count: 12), in: directory)
    let other = name == "dotted" ? directory.file("./clip.mov") : directory.file("linked.mov")
    if name == "linked" { try #require(symlink(asset.path, other) == 0) }
    let source = try Asset(path: other).mediaSource()
    var composition = Composition()
    try composition.insertTimeRange(range(100, 300), of: source, at: .zero)
    let one = try ExportSession(composition, of: asset)
      .plan(ExportSettings(path: directory.file("one.mov"), mode: .constant(FrameRate(30))))
    let several = try ExportSession(composition, of: [asset])
      .plan(ExportSettings(path: directory.file("all.mov"), mode: .constant(FrameRate(30))))
    #expect(one.framesEncoded == 6 && several.framesEncoded == 6)
    let missing = try #require(
      #expect(throws: MediaError.self) {
        try ExportSession(
          composition, of: [Asset.made(.constant(30, count: 3), in: directory, "another")])
      })
    #expect(missing.code == .unsupportedSource)
  }
}
