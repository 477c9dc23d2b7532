// SPDX-License-Identifier: Apache-2.0

package import OvercrankAssets
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
package import OvercrankMovieFormat
import OvercrankSimulatedCameras

/// Reads the painted frame number of each frame in presentation order.
///
/// - Parameters:
///   - asset: The movie.
///   - pane: The part of the frame that has the numbers; nil for the whole frame.
/// - Returns: The numbers; nil for a frame without one.
/// - Throws: `MediaError` when the movie cannot be read.
package func paintedNumbers(_ asset: Asset, in pane: TimeMapBox.Pane? = nil) throws -> [Int?] {
  var reader = try FrameReader(asset)
  var converter = FrameConverter(to: .gray8, isFullRange: true)
  var numbers: [Int?] = []
  for index in 0..<(asset.videoTrack?.frameCount ?? 0) {
    let frame = try converter.convert(try reader.mediaFrame(at: index))
    guard let luma = frame.planeData(0) else { throw MediaError.unreadable(asset.path) }
    let stride = frame.bytesPerRow(0)
    let corner = (pane?.y ?? 0) * stride + (pane?.x ?? 0)
    numbers.append(
      FrameNumberPattern.read(
        width: pane?.width ?? frame.width, height: pane?.height ?? frame.height
      ) { luma[corner + $1 * stride + $0] })
  }
  return numbers
}

/// Reads the bytes of each packet of the video track, in decoding order.
///
/// - Throws: `CallFailure` when the movie cannot be read.
package func frameBytes(_ path: String) throws -> [[UInt8]] {
  var demuxer = try Demuxer(opening: path)
  let track = demuxer.tracks.first { $0.kind == .video }
  var packets: [[UInt8]] = []
  while let packet = try demuxer.nextPacket() {
    if packet.trackIndex == track?.index { packets.append(packet.withBytes { [UInt8]($0) }) }
  }
  return packets
}

extension MediaError {
  fileprivate static func unreadable(_ path: String) -> MediaError {
    MediaError(.invalidData, "\(path) contains a frame without pixels", recovery: "")
  }
}
