// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
public import OvercrankMediaCore

extension StillComposer {
  /// The frames of a strobe image.
  public enum StrobeFrames: Hashable, Sendable {
    /// A number of frames, spread evenly over the range.
    case count(Int)
    /// The frames shown at the start of the range, and at every multiple of a duration after it.
    case every(MediaTime)
  }

  /// Makes a strobe image: moving objects are shown at several times, over the still background.
  ///
  /// The background is the median of up to 15 frames of the range, so it shows no object that is at
  /// the same position in fewer than half of these frames. The camera must not move.
  ///
  /// - Parameter frames: The frames whose moving parts are shown.
  /// - Returns: The image; ``StillImage/frames`` has the frames in order.
  /// - Throws: `MediaError` with `.imageTooLarge`, `.notPositive` for a step that is not above zero,
  ///   `.invalidData` for a frame that cannot be decoded, or `.cancelled`.
  public func strobe(_ frames: StrobeFrames = .count(8)) throws(MediaError) -> StillImage {
    let chosen =
      switch frames {
      case .count(let count): try spread(max(1, min(count, 1_000)))
      case .every(let step): try self.frames(every: step)
      }
    return try composite(chosen) { _ in 1 }
  }

  /// Makes a trail: moving objects are shown at all their positions, older ones fainter.
  ///
  /// - Returns: The image; ``StillImage/frames`` has the frames in order.
  /// - Throws: `MediaError` as ``strobe(_:)`` does.
  public func trail() throws(MediaError) -> StillImage {
    let all = Array(try indices)
    let count = Float(max(1, all.count - 1))
    return try composite(all) { 0.25 + 0.75 * Float($0) / count }
  }

  /// Draws the moving parts of frames over the background; later frames are on top.
  private func composite(
    _ chosen: [Int], weight: (Int) -> Float
  ) throws(MediaError) -> StillImage {
    var reader = try UprightFrames(asset, isColor: true)
    let background = try background(&reader)
    var canvas = Canvas(background)
    var frames: [StillImage.Frame] = []
    for (number, index) in chosen.enumerated() {
      try checkCancelled()
      let image = try reader.image(at: index)
      guard image.width == background.width, image.height == background.height else { continue }
      let share = weight(number)
      for pixel in 0..<image.width * image.height {
        let start = 3 * pixel
        var distance = 0
        for channel in start..<start + 3 {
          distance += abs(Int(image.bytes[channel]) - Int(background.bytes[channel]))
        }
        // A difference from the background of up to 36 levels, summed over the three channels, is
        // noise. From 36 to 72, as at an object's edge, the opacity rises.
        guard distance > 36 else { continue }
        let opacity = share * min(1, Float(distance - 36) / 36)
        for channel in start..<start + 3 {
          let (old, new) = (Float(canvas.bytes[channel]), Float(image.bytes[channel]))
          canvas.bytes[channel] = UInt8(old + (new - old) * opacity)
        }
      }
      frames.append(
        StillImage.Frame(
          index: index, time: try time(of: index),
          box: PixelBox(x: 0, y: 0, width: image.width, height: image.height)))
    }
    return try StillImage(canvas, frames: frames)
  }

  /// The median of frames spread over the range, for each pixel and channel.
  private func background(
    _ reader: inout UprightFrames
  ) throws(MediaError) -> UprightFrames.Image {
    var images: [UprightFrames.Image] = []
    for index in try spread(15) {
      try checkCancelled()
      let image = try reader.image(at: index)
      try Self.check(width: image.width, height: image.height)
      if let first = images.first, first.width != image.width || first.height != image.height {
        continue
      }
      images.append(image)
    }
    guard var result = images.first else {
      throw MediaError(.outsideSource, "\(asset.path) has no frame in this range")
    }
    var values = [UInt8](repeating: 0, count: images.count)
    for index in result.bytes.indices {
      for (number, image) in images.enumerated() {
        // An insertion sort of up to 15 numbers.
        let value = image.bytes[index]
        var position = number
        while position > 0, values[position - 1] > value {
          values[position] = values[position - 1]
          position -= 1
        }
        values[position] = value
      }
      result.bytes[index] = values[images.count / 2]
    }
    return result
  }
}
