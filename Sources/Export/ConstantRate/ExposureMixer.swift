// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankRetiming

/// Averages the images at the exposure instants of each output frame, for motion blur.
struct ExposureMixer {
  typealias Output = FrameSequenceInterpolator.Output

  private let exposures: [Exposure]
  private let blender: FrameBlender
  /// The index of the current output frame, and the index of the first instant in that frame whose
  /// image was not added yet.
  private var (slot, position) = (0, 0)
  /// The last image added to the current output frame, which is not in the blender yet.
  private var image: MediaFrame?
  private var share: Int64 = 0
  /// Whether the blender contains images of the current output frame.
  private var isMixing = false
  /// The lowest confidence in a synthesized image of the current output frame; nil without
  /// synthesized images.
  private var confidence: Float?

  /// Creates a mixer for consecutive output frames.
  init(_ exposures: [Exposure], _ blender: FrameBlender) {
    self.exposures = exposures
    self.blender = blender
  }

  /// Adds an image that is shown at the next `output.count` instants.
  ///
  /// Calls `emit` with each output frame that is complete. If all instants of an output frame show
  /// the same image, the output is that image. The position of an averaged frame is that of its
  /// last image.
  ///
  /// - Returns: False if `emit` returned false, and true otherwise.
  mutating func add(_ output: Output, _ emit: (Output) throws -> Bool) throws -> Bool {
    var rest = Int(clamping: output.count)
    while rest > 0, slot < exposures.count {
      let whole = position == 0 ? wholeCount(of: rest) : (frames: 0, instants: 0)
      if whole.frames > 0 {
        slot += whole.frames
        rest -= whole.instants
        let held = Output(
          image: output.image, count: Int64(whole.frames), confidence: output.confidence,
          position: output.position)
        guard try emit(held) else { return false }
        continue
      }
      let shares = exposures[slot].shares
      let end = min(position + rest, shares.count)
      try add(output, share: shares[position..<end].reduce(0, +))
      rest -= end - position
      position = end
      if position == shares.count {
        guard try emit(finish(output)) else { return false }
      }
    }
    return true
  }

  /// Returns how many whole output frames the next `rest` instants fill, and how many instants
  /// those frames contain.
  private func wholeCount(of rest: Int) -> (frames: Int, instants: Int) {
    var (frames, instants) = (0, 0)
    while slot + frames < exposures.count,
      instants + exposures[slot + frames].shares.count <= rest
    {
      instants += exposures[slot + frames].shares.count
      frames += 1
    }
    return (frames, instants)
  }

  private mutating func add(_ output: Output, share added: Int64) throws {
    if let image, image !== output.image {
      try blender.add(image, share: Float(share))
      isMixing = true
      share = 0
    }
    image = output.image
    share += added
    if let lowest = output.confidence { confidence = min(confidence ?? lowest, lowest) }
  }

  /// Returns the current output frame, to which the last image was added, and starts the next one.
  private mutating func finish(_ last: Output) throws -> Output {
    var made = last.image
    if isMixing {
      try blender.add(made, share: Float(share))
      made = try blender.finish()
    }
    var output = Output(
      image: made, count: 1, confidence: confidence,
      position: confidence == nil ? last.position : last.position.synthesized)
    output.isMixed = isMixing
    (slot, position, image, share, isMixing, confidence) = (slot + 1, 0, nil, 0, false, nil)
    return output
  }
}
