// SPDX-License-Identifier: Apache-2.0
import Overcrank

/// What `info` says of a file.
struct InfoDocument: Encodable {
  struct Video: Encodable {
    let codec: String
    let width: Int
    let height: Int
    let frameCount: Int
    @Nullable var nominalFps: String?
    @Nullable var nominalFpsValue: Double?
    @Nullable var averageFps: String?
    @Nullable var averageFpsValue: Double?
    let variable: Bool
    let timescale: Int
    @Nullable var captureFps: String?
    @Nullable var captureFpsValue: Double?
    @Nullable var captureFpsSource: String?
    let rotation: Int
  }
  struct Audio: Encodable {
    let codec: String
    let sampleRate: Int
    let channels: Int
    let sampleCount: Int64
  }
  struct Chapter: Encodable {
    let title: String
    let startNs: Int64
    let endNs: Int64
  }

  let schema = schemaName("info")
  let file: String
  let container: String
  let durationNs: Int64
  @Nullable var video: Video?
  @Nullable var audio: Audio?
  let metadata: [String: String]
  let chapters: [Chapter]

  enum CodingKeys: CodingKey {
    case schema, file, container, durationNs, video, audio, metadata, chapters
  }
}
