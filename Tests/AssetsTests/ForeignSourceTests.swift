// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// A playlist, a script, a pipe or a directory is not a movie, and is not opened.
struct ForeignSourceTests {
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
  func `Refuses a playlist or script or SDP file and names its path`(
    name: String, text: String
  ) throws {
    let directory = try Scratch()
    let path = try directory.write(Array(text.utf8), as: name)
    let error = #expect(throws: MediaError.self) { try Asset(path: path) }
    #expect(error?.code == .invalidData)
    #expect(error?.message.contains(path) == true)
  }

  @Test func `Pipes and directories are refused without blocking`() throws {
    let directory = try Scratch()
    let pipe = directory.file("pipe.mov")
    try #require(mkfifo(pipe, 0o600) == 0)
    for path in [pipe, "/dev/zero"] {
      let error = #expect(throws: MediaError.self) { try Asset(path: path) }
      #expect(error?.message.contains("not a regular file") == true)
    }
    #expect(throws: MediaError.self) { try Asset(path: directory.path) }
  }
}
