// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankRecognition

/// Faces in single images, compared with the labels of the image set.
struct FaceReaderTests {
  /// Whether a face is the labeled one: the intersection is at least 0.3 of the union.
  private func isSame(_ face: DetectedFace, _ box: FaceImages.Box) -> Bool {
    face.overlap(with: box) >= 0.3
  }

  @Test func `Finds at least 42 of 43 labeled faces and no other faces`() async throws {
    let images = try await FaceImages()
    let reader = try FaceReader()
    var (labeled, found, others, fine) = (0, 0, [String](), 0)
    for name in images.labeledNames {
      let image = try images.image(name)
      try image.withLuma { luma in
        let faces = reader.read(luma)
        labeled += image.faces.count
        found += image.faces.count { box in faces.contains { isSame($0.face, box) } }
        for face in faces where !image.faces.contains(where: { isSame(face.face, $0) }) {
          others.append("\(name): \(face.face)")
        }
        #expect(faces.map(\.face.area) == faces.map(\.face.area).sorted(by: >))
        #expect(faces.map(\.id) == faces.indices.map { Int64($0) + 1 })
        let pass = reader.find(in: luma, FaceReader.Pass(effort: .fine))
        fine += image.faces.count { box in pass.contains { isSame($0, box) } }
      }
    }
    print("faces found: \(found) of \(labeled), in a fine pass \(fine)")
    #expect(labeled == 43 && found >= 42 && fine >= 40, "\(found) and \(fine) of \(labeled)")
    #expect(others.isEmpty, "\(others)")
  }

  @Test func `Reports at most ten faces in descending order of size`() async throws {
    let crowd = try await FaceImages().image("bald_guys")
    var image = PixelBuffer(format: .gray)
    image.fill(crowd.pixels, width: crowd.width, height: crowd.height)
    let faces = try FaceReader().objects(in: image)
    #expect(faces.filter(\.hasRollAngle).count >= 8)
    #expect(faces.count == FaceReader.maximumFaceCount)
    #expect(faces.map(\.faceID) == (1...10).map { $0 })
    let areas = faces.map { ($0.bounds.width * $0.bounds.height * 1e9).rounded() }
    #expect(areas == areas.sorted(by: >))
    for face in faces {
      #expect(face.type == .face && face.corners.count == 4 && face.stringValue == nil)
      #expect(face.time == .zero && face.rawBytes.isEmpty)
      #expect(face.hasRollAngle == (face.rollAngle != nil))
      #expect([nil, -45, 0, 45].contains(face.yawAngle))
      #expect(face.hasYawAngle == (face.yawAngle != nil))
      if let roll = face.rollAngle { #expect(abs(roll) < 40, "all heads are upright") }
      let bounds = face.bounds
      #expect(bounds.x >= 0 && bounds.y >= 0 && bounds.x + bounds.width <= 1)
      #expect(bounds.y + bounds.height <= 1)
    }
  }

  @Test func `The yaw of turned faces is that of their side`() async throws {
    let (images, reader) = (try await FaceImages(), try FaceReader())
    var (turned, correct, opposite) = (0, 0, 0)
    for name in images.labeledNames {
      let image = try images.image(name)
      let mirrored = (0..<image.height).flatMap { row in
        image.pixels[row * image.width..<(row + 1) * image.width].reversed()
      }
      for (pixels, isMirrored) in [(image.pixels, false), (mirrored, true)] {
        for label in image.faces where abs(label.yaw) > 20 {
          let left = isMirrored ? Double(image.width) - label.left - label.width : label.left
          let face = DetectedFace(
            left: left, top: label.top, right: left + label.width,
            bottom: label.top + label.height, confidence: 1)
          let pose = try pixels.withLuma(width: image.width, height: image.height) {
            reader.pose(of: face, in: $0, near: 0)
          }
          #expect([nil, -45, 0, 45].contains(pose.yaw))
          let isRight = (label.yaw > 0) != isMirrored
          turned += 1
          if pose.yaw == (isRight ? 45 : -45) { correct += 1 }
          if pose.yaw == (isRight ? -45 : 45) { opposite += 1 }
        }
      }
    }
    print("yaw: \(correct) of \(turned) turned faces, \(opposite) to the wrong side")
    #expect(turned >= 40 && 10 * correct >= 9 * turned && opposite == 0)
  }

  @Test func `Finds no face in images of dogs or textures`() async throws {
    let reader = try FaceReader()
    let dogs = try await FaceImages().image("dogs")
    let animals = try dogs.withLuma { reader.read($0) }
    #expect(animals.isEmpty, "\(animals)")
    var random = SeededGenerator(seed: 27)
    for number in 0..<60 {
      let pixels = Texture.pixels(number, &random)
      try pixels.withLuma(width: Texture.width, height: Texture.height) { luma in
        let effort = number < 6 ? FaceReader.Effort.fine : .quick
        for degrees in [0, FaceReader.tilt, -FaceReader.tilt] {
          let faces = reader.find(in: luma, FaceReader.Pass(effort: effort, degrees: degrees))
          #expect(faces.isEmpty, "texture \(number): \(faces)")
        }
      }
    }
  }

  @Test func `Searches images of any size and row length for faces`() async throws {
    let reader = try FaceReader()
    #expect(try reader.objects(in: PixelBuffer(format: .gray)).isEmpty)
    for (width, height) in [(1, 1), (2, 1), (3, 17), (40, 40), (1, 5_000), (7_000, 2)] {
      let pixels = [UInt8](repeating: 9, count: width * height)
      try pixels.withLuma(width: width, height: height) { luma in
        #expect(reader.read(luma).isEmpty)
        #expect(reader.find(in: luma, FaceReader.Pass(effort: .quick)).isEmpty)
        for edge in [0.0, 1, 50, -1e6, 1e6] {
          let face = DetectedFace(left: edge, top: 0, right: 50, bottom: 40, confidence: 1)
          #expect(reader.find(face, in: luma, degrees: 30).isEmpty)
          #expect(reader.roll(of: face, in: luma, near: edge) == nil)
        }
      }
    }
    // The luma of packed frames, in which luma and chroma alternate, such as YUYV.
    let image = try await FaceImages().image("2009_004587")
    let packed: [UInt8] = image.pixels.reduce(into: []) { $0 += [$1, 128] }
    let pass = FaceReader.Pass(effort: .quick)
    let faces = try image.withLuma { reader.find(in: $0, pass) }
    let same = try packed.withUnsafeBufferPointer { pixels in
      let luma = LumaImage(
        base: try #require(pixels.baseAddress), width: image.width, height: image.height,
        bytesPerRow: 2 * image.width, bytesPerPixel: 2)
      return reader.find(in: luma, pass)
    }
    #expect(!faces.isEmpty && same == faces)
  }
}

/// Gray patterns without faces.
private enum Texture {
  static let (width, height) = (240, 180)

  /// Pixels of stripes, rings, blobs, checks or noise.
  static func pixels(_ number: Int, _ random: inout SeededGenerator) -> [UInt8] {
    let (a, b) = (
      Double.random(in: 0.02...0.6, using: &random), Double.random(in: 0...3, using: &random)
    )
    let blobs = (0..<12).map { _ in
      (
        x: Double.random(in: 0...240, using: &random),
        y: Double.random(in: 0...180, using: &random),
        size: Double.random(in: 5...40, using: &random)
      )
    }
    var pixels: [UInt8] = []
    for row in 0..<height {
      for column in 0..<width {
        let (x, y) = (Double(column), Double(row))
        let value: Double =
          switch number % 5 {
          case 0: (x * a).remainder(dividingBy: 4) + (y * b * a).remainder(dividingBy: 4)
          case 1:
            (((x - 90) * (x - 90) + (y - 80) * (y - 80)).squareRoot() * a).remainder(dividingBy: 4)
          case 2:
            blobs.contains {
              ($0.x - x) * ($0.x - x) + ($0.y - y) * ($0.y - y) < $0.size * $0.size
            } ? -2 : 1
          case 3: (Int(x * a / 4) + Int(y * a / 4)).isMultiple(of: 2) ? 2 : -2
          default: Double.random(in: -4...4, using: &random)
          }
        pixels.append(UInt8(max(0, min(255, 128 + 30 * value))))
      }
    }
    return pixels
  }
}

extension FaceImages.Image {
  /// Calls a closure with the luma of the image.
  func withLuma<Result>(_ body: (LumaImage) throws -> Result) throws -> Result {
    try pixels.withLuma(width: width, height: height, body)
  }
}
