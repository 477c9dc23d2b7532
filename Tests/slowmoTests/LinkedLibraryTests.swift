// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// The shared libraries that the programs need.
///
/// A new library must be added here explicitly, since every installation of the command needs it.
struct LinkedLibraryTests {
  /// The runtime libraries of C and Swift, with SwiftOnoneSupport for debug builds.
  private static let runtime: Set = [
    "ld-linux-x86-64.so.2", "libBlocksRuntime.so", "libFoundationEssentials.so", "libc.so.6",
    "libdispatch.so", "libm.so.6", "libswiftCore.so", "libswiftDispatch.so", "libswiftGlibc.so",
    "libswiftSwiftOnoneSupport.so", "libswiftSynchronization.so", "libswift_Concurrency.so",
    "libswift_RegexParser.so", "libswift_StringProcessing.so",
  ]
  private static let core: Set = [
    "libasound.so.2", "libavcodec.so.59", "libavformat.so.59", "libavutil.so.57",
    "librubberband.so.2", "libswresample.so.4", "libswscale.so.6", "libturbojpeg.so.0",
    "libv4l2.so.0",
  ]
  private static let full: Set = ["libSDL2-2.0.so.0", "libheif.so.1"]

  @Test(arguments: [("slowmo", core), ("slowmo-full", core.union(full))])
  func `Each program links only the listed shared libraries`(
    name: String, expected: Set<String>
  ) async throws {
    let dynamic = try await run("readelf", ["-d", program(name)])
    try #require(dynamic.status == 0)
    let needed = Set(
      dynamic.output.matches(of: /\(NEEDED\)\s+Shared library: \[(.*)\]/).map {
        String($0.output.1)
      })
    #expect(needed.subtracting(Self.runtime) == expected)
  }
}
