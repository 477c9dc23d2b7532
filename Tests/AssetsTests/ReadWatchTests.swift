// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import TestSupport
import Testing

/// What is no movie of its own is not opened, and no call into libav goes on without an end.
struct ReadWatchTests {
  @Test func `A call may read on as long as it gets on, or does not work`() {
    let watch = ReadWatch()
    let limit = ReadWatch.longestStall
    watch.begin(now: 0)
    for step in 0..<Int64(20) {
      let ends = watch.shouldEnd(position: step * 100, now: step * limit / 2)
      #expect(!ends)
    }
    // Back and forth over what was read already, until it is enough.
    let last = 19 * limit / 2
    let ends = [limit - 1, limit, limit + 1].map { time in
      [0, 1_900, 50].map { watch.shouldEnd(position: $0, now: last + time) }
    }
    #expect(ends == [[false, false, false], [true, true, true], [true, true, true]])
    #expect(watch.isStalled)
  }

  @Test func `The next call begins anew`() {
    let watch = ReadWatch()
    watch.begin(now: 0)
    #expect(!watch.shouldEnd(position: 1, now: 0))
    watch.begin(now: ReadWatch.longestStall)
    #expect(!watch.shouldEnd(position: 0, now: 2 * ReadWatch.longestStall - 1))
    #expect(watch.shouldEnd(position: 0, now: 2 * ReadWatch.longestStall))
  }

  @Test(arguments: [
    ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.ts\n#EXT-X-ENDLIST\n"),
    ("list.mov", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://192.0.2.1/a.ts\n"),
    ("script.ffconcat", "ffconcat version 1.0\nfile other.mov\n"),
    ("script.mp4", "ffconcat version 1.0\nfile other.mov\n"),
    (
      "live.sdp",
      "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"
    ),
    ("list.mpd", "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"></MPD>"),
  ])
  func `Playlists, scripts and descriptions are refused by name`(name: String, text: String) throws
  {
    let folder = try Scratch()
    let path = try folder.write(Array(text.utf8), as: name)
    let error = #expect(throws: AssetError.self) { try Asset(path: path) }
    #expect(error?.code == .invalidData)
    #expect(error?.message.contains(path) == true)
  }

  @Test func `A pipe and a folder are refused, and nobody waits for them`() throws {
    let folder = try Scratch()
    let pipe = folder.file("pipe.mov")
    try #require(mkfifo(pipe, 0o600) == 0)
    for path in [pipe, "/dev/zero"] {
      let error = #expect(throws: AssetError.self) { try Asset(path: path) }
      #expect(error?.message.contains("no regular file") == true)
    }
    #expect(throws: AssetError.self) { try Asset(path: folder.path) }
  }
}
