// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import OvercrankAssets
public import OvercrankMediaCore
import OvercrankRaster

/// Draws the paths of tracked objects over a frame, as an SVG image.
public struct TrackOverlay: Sendable {
  private let tracks: [ObjectTrack]

  /// Creates the drawing of a track.
  public init(_ track: ObjectTrack) { tracks = [track] }

  /// Creates the drawing of several tracks of one movie.
  public init(_ tracks: [ObjectTrack]) { self.tracks = tracks }

  /// Returns the SVG document, with the first tracked frame as its background.
  ///
  /// The boxes are orange, the paths yellow, and each known position a dot. A path is interrupted
  /// where its object was lost.
  ///
  /// - Parameter asset: The movie that was tracked.
  /// - Returns: The text of the document.
  /// - Throws: `MediaError` as ``FrameReader`` does.
  public func svg(over asset: Asset) throws(MediaError) -> String {
    let first = tracks.compactMap { $0.points.first?.index }.min() ?? 0
    var reader = try FrameReader(asset)
    var writer = PNGWriter()
    let png = Data(try writer.data(of: first, from: &reader)).base64EncodedString()
    let isTransposed = asset.videoTrack.map { $0.rotation % 180 != 0 } ?? false
    let stored = (asset.videoTrack?.width ?? 0, asset.videoTrack?.height ?? 0)
    let (width, height) = isTransposed ? (stored.1, stored.0) : stored
    let line = max(1, Double(max(width, height)) / 640)
    var lines = [
      #"<svg xmlns="http://www.w3.org/2000/svg" width="\#(width)" height="\#(height)" viewBox="0 0 \#(width) \#(height)">"#,
      #"<image width="\#(width)" height="\#(height)" href="data:image/png;base64,\#(png)"/>"#,
      #"<g fill="none" stroke-width="\#(Self.number(line))">"#,
    ]
    lines += tracks.map(\.box).map { box in
      ##"<rect x="\##(box.x)" y="\##(box.y)" width="\##(box.width)" height="\##(box.height)" stroke="#ff9500"/>"##
    }
    for run in runs {
      let points = run.map { "\(Self.number($0.x)),\(Self.number($0.y))" }.joined(separator: " ")
      lines.append(##"<polyline points="\##(points)" stroke="#ffd60a"/>"##)
    }
    lines.append(##"</g><g fill="#ff453a">"##)
    for point in runs.joined() {
      lines.append(
        #"<circle cx="\#(Self.number(point.x))" cy="\#(Self.number(point.y))" r="\#(Self.number(1.5 * line))"/>"#
      )
    }
    return (lines + ["</g></svg>"]).joined(separator: "\n") + "\n"
  }

  /// The known positions, separated where the object was lost.
  private var runs: [[Point]] {
    tracks.flatMap { $0.points.split { $0.position == nil }.map { $0.compactMap(\.position) } }
  }

  /// A number with two digits after the point.
  private static func number(_ value: Double) -> String {
    Rational.decimals(Int64(max(-1e12, min(1e12, (value * 100).rounded()))), count: 2)
  }
}
