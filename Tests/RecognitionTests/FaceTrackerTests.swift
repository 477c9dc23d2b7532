// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster
import Synchronization
import TestSupport
import Testing

@testable import OvercrankRecognition

/// Faces in consecutive frames, and their ids.
struct FaceTrackerTests {
  /// Simulates six people in front of a camera that swings, without images.
  private struct Crowd {
    private var random: SeededGenerator
    private var people: [(x: Double, y: Double, size: Double)]
    private var motion = (x: 0.0, y: 0.0)

    init(seed: UInt64) {
      random = SeededGenerator(seed: seed)
      people = []
      for index in 0..<6 {
        let size = Double.random(in: 80...110, using: &random)
        people.append((Double(index % 3) * 190, Double(index / 3) * 190, size))
      }
    }

    /// Moves each face by at most 0.4 of its size, and returns what a detector would find.
    ///
    /// The positions are off by some pixels, and one face in ten is missed.
    mutating func step() -> [(person: Int, face: DetectedFace)] {
      func limited(_ value: Double) -> Double { max(-26, min(26, value)) }
      motion.x = limited(motion.x + Double.random(in: -9...9, using: &random))
      motion.y = limited(motion.y + Double.random(in: -9...9, using: &random))
      var seen: [(person: Int, face: DetectedFace)] = []
      for index in people.indices {
        people[index].x += motion.x
        people[index].y += motion.y
        let noise = 0.03 * people[index].size
        let x = people[index].x + Double.random(in: -noise...noise, using: &random)
        let y = people[index].y + Double.random(in: -noise...noise, using: &random)
        let size = people[index].size * Double.random(in: 0.9...1.1, using: &random)
        guard Double.random(in: 0...1, using: &random) > 0.1 else { continue }
        seen.append(
          (
            index,
            DetectedFace(
              left: x - size / 2, top: y - size / 2, right: x + size / 2, bottom: y + size / 2,
              confidence: 1)
          ))
      }
      seen.shuffle(using: &random)
      return seen
    }
  }

  @Test func `Face ids persist if faces move 0.4 of their size per frame`() {
    for seed in 0..<200 {
      var crowd = Crowd(seed: UInt64(seed))
      var random = SeededGenerator(seed: UInt64(1_000 + seed))
      var identities = FaceIdentities()
      var ids: [Int: Set<Int64>] = [:]
      var time: Int64 = 0
      for _ in 0..<100 {
        let seen = crowd.step()
        // A slow search examines frames at irregular times.
        time += Int64.random(in: 25_000...42_000, using: &random)
        let found = identities.identified(seen.map(\.face), at: time)
        #expect(found.map(\.face) == seen.map(\.face))
        for (face, truth) in zip(found, seen) { ids[truth.person, default: []].insert(face.id) }
      }
      #expect(ids.count == 6 && ids.values.allSatisfy { $0.count == 1 }, "seed \(seed): \(ids)")
      #expect(Set(ids.values.flatMap(\.self)).count == 6)
    }
  }

  @Test func `A face keeps its id for one second out of view`() {
    func face(_ x: Double) -> DetectedFace {
      DetectedFace(left: x, top: 0, right: x + 100, bottom: 100, confidence: 1)
    }
    var identities = FaceIdentities()
    #expect(identities.identified([face(0)], at: 0).map(\.id) == [1])
    #expect(identities.identified([face(500), face(2)], at: 40_000).map(\.id) == [2, 1])
    #expect(identities.followed(at: 60_000).count == 2)
    #expect(identities.identified([], at: 80_000).isEmpty)
    #expect(identities.identified([face(2)], at: 1_000_000).map(\.id) == [1])
    // Face 2 was not seen for more than a second.
    #expect(identities.identified([face(500)], at: 1_900_000).map(\.id) == [3])
    // A face of a different size gets a new id.
    var large = face(0)
    (large.right, large.bottom) = (300, 300)
    #expect(identities.identified([large], at: 1_910_000).map(\.id) == [4])
    // All faces are new after the clock was restarted.
    #expect(identities.identified([face(500)], at: 5).map(\.id) == [5])
    // After a face is lost, only a few frames are searched for it.
    for time in 6..<20 { _ = identities.identified([], at: Int64(time)) }
    #expect(identities.followed(at: 20).isEmpty)
  }

  @Test func `Faces of a movie keep their ids and are sorted by size`()
    async throws
  {
    let images = try await FaceImages()
    let scratch = try Scratch()
    let path = scratch.file("faces.mov")
    try await images.writeMovie(path, of: "2008_002506", count: 20, step: 3)
    var reader = try MetadataObjectReader(Asset(path: path), types: [.face])
    var last: [Int64: Double] = [:]
    for index in 0..<reader.frameCount {
      let faces = try reader.objects(ofFrame: index)
      #expect(Set(faces.compactMap(\.faceID)) == [1, 2, 3], "frame \(index): \(faces)")
      let areas = faces.map { ($0.bounds.width * $0.bounds.height * 1e9).rounded() }
      #expect(areas == areas.sorted(by: >))
      for face in faces {
        let center = face.bounds.x + face.bounds.width / 2
        // The face moves by 3 of 440 pixels per frame. The step of the detector limits the
        // accuracy.
        if let before = last[try #require(face.faceID)] {
          #expect(abs(center - before + 3.0 / 440) < 0.05)
        }
        last[try #require(face.faceID)] = center
        #expect(face.duration == MediaTime(1, over: 30))
        #expect(face.time == MediaTime(Int64(index), over: 30))
      }
    }
    #expect(last.count == 3)
  }

  @Test func `Face searches vary in effort within the area of interest`() async throws {
    let image = try await FaceImages().image("2008_002506")
    var tracker = FaceTracker(try FaceReader())
    var whole: [FaceReader.Pass] = []
    var (crops, rolls) = (0, 0)
    try image.withLuma { luma in
      for index in 0..<12 {
        let faces = tracker.look(at: luma, microseconds: Int64(index) * 42_000)
        #expect(Set(faces.map(\.id)) == [1, 2, 3])
        for pass in tracker.passes {
          switch pass {
          case .whole(let pass): whole.append(pass)
          // A crop is searched only for rotations near the known one.
          case .crop(let degrees):
            crops += 1
            #expect(abs(degrees) < 45)
          case .roll: rolls += 1
          }
        }
        for face in faces {
          let truth = image.faces.max {
            face.face.overlap(with: $0) < face.face.overlap(with: $1)
          }
          let roll = try #require(face.roll)
          #expect(abs(roll - (truth?.roll ?? 90)) < 12, "\(roll) of \(truth?.roll ?? 90)")
        }
      }
      #expect(Array(whole.prefix(4)) == FaceTracker.passes && whole.count == 6, "\(whole)")
      // In 0.46 s, the roll of each of three faces is estimated every 0.1 s.
      #expect(rolls == 12)
      #expect(crops >= 6, "\(crops)")
      var half = FaceTracker(try FaceReader())
      let area = PixelRect(x: 0, y: 0, width: 220, height: luma.height)
      let found = half.look(at: luma, in: area, microseconds: 0)
      #expect(found.count == 1 && found[0].face.center.x < 220)
    }
  }

  @Test func `A session reports faces and codes in one metadata output`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("faces.mov")
    try await FaceImages().writeMovie(path, of: "2008_001009", count: 8, step: 2)
    let camera = try CaptureDevice.named("file:\(path)?pace=max")
    let session = try CaptureSession(device: camera, format: camera.fastestFormat { _ in true })
    let output = try MetadataOutput(session: session, types: [.qr, .face])
    #expect(output.metadataObjectTypes == [.qr, .face])
    #expect(output.availableMetadataObjectTypes == MetadataObjectType.codes + [.face])
    let frames = Mutex<[MetadataObjectFrame]>([])
    output.setMetadataObjectsHandler { frame in frames.withLock { $0.append(frame) } }
    let events = session.events
    try await session.startRunning()
    for await event in events { if case .didStopRunning = event { break } }
    while output.isBusy { await Task.yield() }
    let seen = frames.withLock { $0 }
    #expect(output.ledger.isBalanced && output.ledger.examined == 8, "\(output.ledger)")
    #expect(seen.map(\.frameIndex) == Array(0..<8))
    for frame in seen {
      #expect(Set(frame.objects.compactMap(\.faceID)) == [1, 2], "\(frame)")
      #expect(frame.objects.allSatisfy { $0.time == frame.presentationTimeStamp })
    }
  }
}
