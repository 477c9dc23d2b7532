// SPDX-License-Identifier: Apache-2.0

package import OvercrankAssets
package import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

extension Asset {
  private struct NoFrames: Error {}

  /// Writes a lossless movie from frames of equal size and pixel format.
  package static func lossless(_ frames: [MediaFrame], rate: Int32, at path: String) throws -> Asset
  {
    guard let first = frames.first else { throw NoFrames() }
    var settings = Encoder.VideoSettings(
      codec: "ffv1", width: first.width, height: first.height, pixelFormat: first.pixelFormat,
      timescale: rate * 1_000)
    settings.threadCount = 1
    var encoder = try Encoder(video: settings)
    let file = try MovieFile(creating: path, overwrites: true)
    var writer = try MovieWriter(
      path: file.writtenPath, settings: .init(container: .mov, movieTimescale: rate * 1_000))
    _ = try writer.addTrack(encoder.parameters, timescale: rate * 1_000)
    try writer.begin()
    func drain() throws {
      while let packet = try encoder.nextPacket() {
        let time = packet.pts ?? 0
        try writer.write(packet, track: 0, pts: time, dts: time, duration: 1_000)
      }
    }
    for (number, frame) in frames.enumerated() {
      try encoder.send(frame, at: Int64(number) * 1_000)
      try drain()
    }
    try encoder.send(nil)
    try drain()
    try writer.finish()
    return try Asset(path: path)
  }
}
