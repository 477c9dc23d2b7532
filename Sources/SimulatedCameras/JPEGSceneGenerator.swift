// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// Generates the ball scene as MJPEG.
///
/// A restart marker follows each block of 16 by 16 pixels, so that the bytes of a block do not
/// depend on other blocks. The background is encoded once. For each frame only the blocks that
/// changed are encoded.
struct JPEGSceneGenerator: TestPatternGenerator {
  private var scene: BallScene
  private var encoder: JPEGBlockEncoder
  /// The JPEG header: all bytes before the first block.
  private let header: [UInt8]
  /// The blocks of the background in order, each with the marker after it.
  private let background: [UInt8]
  /// The offsets of the blocks in `background`, followed by the end of the last block.
  private let starts: [Int]
  /// The indices of the blocks that can change, in order.
  private let changing: [Int]
  /// For each block of the image, its index in `changing`, or -1 if the block never changes.
  private let slots: [Int]
  /// The current bytes of the blocks that can change, in slots of equal size.
  private var memory: [UInt8]
  /// The number of bytes in each slot.
  ///
  /// 0 means that the block in the slot still equals the background.
  private var byteCounts: [Int]
  /// For each block that can change, the number of the frame in which it was last encoded, as
  /// counted by this generator.
  private var encodedIn: [UInt64]
  private var frameCount: UInt64 = 0
  let maximumByteCount: Int

  /// The size in bytes of the slot for one encoded block, several times what the most detailed
  /// blocks need.
  private static let bytesPerBlock = 1_536

  init(scene: BallScene) throws(CallFailure) {
    self.scene = scene
    let image = scene.background
    let (columns, rows) = (image.stride / 16, image.rows / 16)
    var gray = try JPEGRowEncoder(width: 16, height: 16)
    let parts = try JPEGParts(gray.encode { _, row in row.update(repeating: 128, count: 16) })
    var encoder = try JPEGBlockEncoder(tablesOf: parts, blockCount: columns * rows)
    header = parts.header(width: image.width, height: image.height, blocksPerRestart: 1)
    var background: [UInt8] = []
    var starts = [0]
    let room = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.bytesPerBlock, alignment: 16)
    defer { room.deallocate() }
    for row in 0..<rows {
      for column in 0..<columns {
        let count = encoder.encode(column: column, row: row, of: image, into: room)
        background += room.prefix(count)
        starts.append(background.count)
      }
    }
    (self.background, self.starts, self.encoder) = (background, starts, encoder)
    changing = Self.changingBlocks(of: scene)
    var slots = Array(repeating: -1, count: columns * rows)
    for (slot, index) in changing.enumerated() { slots[index] = slot }
    self.slots = slots
    memory = Array(repeating: 0, count: changing.count * Self.bytesPerBlock)
    byteCounts = Array(repeating: 0, count: changing.count)
    encodedIn = byteCounts.map { _ in 0 }
    maximumByteCount = header.count + background.count + memory.count
  }

  /// The indices of the blocks in the parts of the scene that can change.
  private static func changingBlocks(of scene: BallScene) -> [Int] {
    let columns = scene.image.stride / 16
    var blocks: Set<Int> = []
    let (stride, rows) = (scene.image.stride, scene.image.rows)
    for rect in scene.reach.map({ $0.clamped(width: stride, height: rows) }) {
      for row in rect.y / 16..<(rect.bottom + 15) / 16 {
        for column in rect.x / 16..<(rect.right + 15) / 16 {
          blocks.insert(row * columns + column)
        }
      }
    }
    return blocks.sorted()
  }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) throws(CallFailure) -> Int {
    scene.draw(number: number, isFlash: isFlash)
    frameCount += 1
    for rect in scene.changed { encode(rect) }
    var writer = ByteWriter(buffer)
    header.withUnsafeBytes { writer.append($0) }
    background.withUnsafeBytes { background in
      memory.withUnsafeBytes { memory in
        var next = 0
        for (slot, index) in changing.enumerated() where byteCounts[slot] > 0 {
          writer.append(UnsafeRawBufferPointer(rebasing: background[next..<starts[index]]))
          let start = slot * Self.bytesPerBlock
          writer.append(
            UnsafeRawBufferPointer(rebasing: memory[start..<start + byteCounts[slot]]))
          next = starts[index + 1]
        }
        writer.append(UnsafeRawBufferPointer(rebasing: background[next...]))
      }
    }
    guard !writer.isOverfull, !encoder.isOverfull else {
      throw CallFailure("draw", "an image of \(buffer.count) bytes", code: -28)
    }
    return writer.count
  }

  /// Encodes the blocks of a rectangle, except those that were already encoded for this frame.
  private mutating func encode(_ rect: PixelRect) {
    let rect = rect.clamped(width: scene.image.stride, height: scene.image.rows)
    guard !rect.isEmpty else { return }
    let columns = scene.image.stride / 16
    for row in rect.y / 16...(rect.bottom - 1) / 16 {
      for column in rect.x / 16...(rect.right - 1) / 16 {
        let slot = slots[row * columns + column]
        guard slot >= 0, encodedIn[slot] != frameCount else { continue }
        encodedIn[slot] = frameCount
        byteCounts[slot] = memory.withUnsafeMutableBytes { memory in
          encoder.encode(
            column: column, row: row, of: scene.image,
            into: UnsafeMutableRawBufferPointer(
              rebasing: memory[slot * Self.bytesPerBlock..<(slot + 1) * Self.bytesPerBlock]))
        }
      }
    }
  }
}
