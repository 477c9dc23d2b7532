// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankRecognition

/// The search of each frame of a movie.
struct MovieSearchTests {
  /// The texts of each frame of a movie.
  private func texts(
    _ path: String, agreement: Int? = nil, passRate: FrameRate? = nil
  ) throws -> (texts: [Set<String>], searchedCount: Int) {
    var reader = try MetadataObjectReader(
      Asset(path: path), requiredAgreement: agreement, maximumPassRate: passRate)
    var (texts, searchedCount): ([Set<String>], Int) = ([], 0)
    while let frame = try reader.next() {
      #expect(frame.frameIndex == texts.count)
      // ffmpeg rounds times to the tick of the file.
      let time = frame.presentationTimeStamp.doubleValue
      #expect(abs(time - Double(frame.frameIndex) / 240) < 0.001)
      texts.append(Set(frame.objects.compactMap(\.stringValue)))
      if frame.isSearched { searchedCount += 1 }
    }
    return (texts, searchedCount)
  }

  /// The number of frames whose code is among the texts.
  private func hits(_ texts: [Set<String>], _ labels: [String]) -> Int {
    zip(texts, labels).filter { $0.contains($1) }.count
  }

  @Test func `Codes are found in the only frame that shows them`()
    async throws
  {
    let scratch = try Scratch()
    let (count, length) = (RunSize.cases(16, full: 200), 5)
    let set = try await CodeFrames("--clip", String(count), String(length))
    let labels = set.frames.map { $0.codes[0].text }
    let reader = try CodeReader()
    let peer =
      try await set.textsOfPeer()
      ?? set.frames.map { frame in
        // The frames of a clip are smaller than those of a set.
        try Array(set.pixels(frame).suffix(640 * 360)).withLuma(width: 640, height: 360) {
          reader.read($0, .thorough).compactMap(\.text)
        }
      }
    let read = peer.map(Set.init)
    // Each code in five frames. The first one that zxing-cpp reads by itself is among ours.
    try await set.writeClip(scratch.file("five.mov"))
    for agreement in [nil, 2] {
      let (five, searchedCount) = try texts(scratch.file("five.mov"), agreement: agreement)
      #expect(five.count == labels.count && searchedCount == labels.count)
      #expect(zip(five, labels).allSatisfy { $0.isSubset(of: [$1]) }, "no text is wrong")
      let (own, others) = (hits(five, labels), hits(read, labels))
      print("frames of \(labels.count) with a code that was read: \(own), zxing-cpp \(others)")
      #expect(own >= others)
      for code in 0..<count {
        let frames = code * length..<(code + 1) * length
        let readable = frames.filter { read[$0].contains(labels[$0]) }
        guard readable.count > 1, let first = readable.first else { continue }
        #expect(five[first].contains(labels[first]), "\(first): \(set.frames[first].codes[0].type)")
      }
    }
    // Each code in one frame.
    let chosen = stride(from: 0, to: labels.count, by: length).map { $0 }
    try await set.writeClip(scratch.file("one.mov"), every: length)
    let (one, searchedCount) = try texts(scratch.file("one.mov"))
    #expect(one.count == count && searchedCount == count)
    #expect(zip(one, chosen).allSatisfy { $0.isSubset(of: [labels[$1]]) }, "no text is wrong")
    let (own, others) = (
      hits(one, chosen.map { labels[$0] }), hits(chosen.map { read[$0] }, chosen.map { labels[$0] })
    )
    print("codes of \(count) in one frame that were read: \(own), zxing-cpp \(others)")
    #expect(own >= others && others > count / 2)
    // If two frames must agree, a text of one frame is not reported.
    #expect(try texts(scratch.file("one.mov"), agreement: 2).texts.allSatisfy(\.isEmpty))
    // A search of half of the frames misses codes, and says so.
    let half = try texts(scratch.file("one.mov"), passRate: FrameRate(120))
    #expect(half.searchedCount == count / 2)
    #expect(hits(half.texts, chosen.map { labels[$0] }) <= count / 2)
  }

  @Test func `A search finds the same with any number of threads`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("faces.mov")
    try await FaceImages().writeMovie(path, of: "2008_001009", count: 12, step: 2)
    func frames(_ threadCount: Int) throws -> [MetadataObjectFrame] {
      let search = try MovieObjectSearch(
        Asset(path: path), ObjectReaders(MetadataObjectType.codes + [.face]),
        .init(frames: 1..<12, threadCount: threadCount))
      var frames: [MetadataObjectFrame] = []
      while let frame = try search.next() { frames.append(frame) }
      return frames
    }
    let alone = try frames(1)
    #expect(alone.map(\.frameIndex) == Array(1..<12))
    // The whole frame is searched for new faces every 50 ms.
    #expect(alone.filter(\.isSearched).map(\.frameIndex) == [1, 3, 5, 7, 9, 11])
    #expect(alone.allSatisfy { Set($0.objects.compactMap(\.faceID)) == [1, 2] })
    #expect(try frames(5) == alone)
    // The asynchronous sequence has the same frames.
    var others: [MetadataObjectFrame] = []
    for try await frame in try Asset(path: path).metadataObjects(
      of: MetadataObjectType.codes + [.face], frames: 1..<12)
    {
      others.append(frame)
    }
    #expect(others == alone)
    // A cancelled search still reports the frames that are decoded.
    var reader = try MetadataObjectReader(Asset(path: path), types: [.face])
    #expect(try reader.next() != nil)
    var rest = 0
    while try reader.next(isCancelled: { true }) != nil { rest += 1 }
    #expect(rest > 0 && rest <= 11)
    #expect(throws: MediaError.self) {
      _ = try MetadataObjectReader(Asset(path: path), frames: 3..<13)
    }
  }

  @Test func `A face in a single frame is found`() async throws {
    let scratch = try Scratch()
    let image = try await FaceImages().image("2008_001009")
    let box = try #require(image.faces.max { $0.width < $1.width })
    let (width, height) = (640, 480)
    let scaled = image.scaled(toHeight: Int(90 * Double(image.height) / box.height))
    let face = try #require(scaled.faces.max { $0.width < $1.width })
    // A shaded wall in front of which the camera tilts, and the face with what surrounds it.
    let (side, left, top) = (Int(face.width * 1.6), Int(face.left), Int(face.top))
    let offset = (side - Int(face.width)) / 2
    var generator = SeededGenerator(seed: 1)
    let places = [3: (20, 30), 8: (440, 300), 17: (250, 150), 29: (430, 10), 38: (100, 300)]
    let wall = (0..<width * (height + 40)).map {
      UInt8(80 + $0 % width / 16) + UInt8(truncatingIfNeeded: generator.next() % 8)
    }
    var movie = [UInt8]()
    for frame in 0..<40 {
      var pixels = Array(wall[frame * width..<(frame + height) * width])
      if let (x, y) = places[frame] {
        for row in 0..<side {
          for column in 0..<side {
            let (fromX, fromY) = (left - offset + column, top - offset + row)
            guard scaled.pixels.indices.contains(fromY * scaled.width + fromX) else { continue }
            pixels[(y + row) * width + x + column] = scaled.pixels[fromY * scaled.width + fromX]
          }
        }
      }
      movie += pixels
    }
    try Data(movie).write(to: URL(fileURLWithPath: scratch.file("movie.gray")))
    for (rate, count) in [(240, 40), (30, 10)] {
      let path = scratch.file("\(rate).mov")
      let made = try await run(
        "ffmpeg",
        [
          "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "\(width)x\(height)", "-r",
          "\(rate)", "-i", scratch.file("movie.gray"), "-c:v", "ffv1", path,
        ])
      #expect(made.status == 0, "\(made.errors)")
      var reader = try MetadataObjectReader(
        Asset(path: path), types: [.face], frames: 0..<count)
      var (found, searched) = ([Int: Point](), [Int]())
      while let frame = try reader.next() {
        let index = Int(frame.frameIndex)
        if frame.isSearched { searched.append(index) }
        #expect(frame.objects.count == (places[index] == nil ? 0 : 1), "frame \(index)")
        if let bounds = frame.objects.first?.bounds {
          found[index] = Point(
            x: (bounds.x + bounds.width / 2) * Double(width),
            y: (bounds.y + bounds.height / 2) * Double(height))
        }
      }
      for (frame, (x, y)) in places where frame < count {
        let center = try #require(found[frame], "frame \(frame) at \(rate) fps")
        let (dx, dy) = (center.x - Double(x + side / 2), center.y - Double(y + side / 2))
        #expect((dx * dx + dy * dy).squareRoot() < 20, "frame \(frame)")
      }
      // Whole frames are searched at an interval of at most 12 frames and of 50 ms.
      #expect(searched == Array(stride(from: 0, to: count, by: rate == 240 ? 12 : 2)))
    }
  }

  @Test func `Only the changed part of a frame is searched again`() throws {
    let (width, height) = (640, 360)
    let first = [UInt8](repeating: 90, count: width * height)
    var second = first
    second[20 * width + 300] = 91
    second[45 * width + 330] = 91
    try first.withLuma(width: width, height: height) { first in
      try second.withLuma(width: width, height: height) { second in
        let area = second.area(changedSince: first)
        #expect(area == PixelRect(x: 300, y: 20, width: 31, height: 26))
        #expect(first.area(changedSince: first).isEmpty)
        let owner = try MediaFrame.video(width: 2, height: 2, pixelFormat: .gray8)
        var schedule = MovieSchedule(findsCodes: true, findsFaces: false, rate: nil)
        func plan(_ index: Int, _ changed: PixelRect?) throws -> MovieSchedule.Plan {
          schedule.plan(
            for: DecodedFrame(
              index: index, luma: second, time: MediaTime(Int64(index), over: 240),
              duration: MediaTime(1, over: 240), changedArea: changed, owner: owner))
        }
        #expect(try plan(0, nil).search?.codeArea == second.area)
        // The same image is not searched again, and yet its objects are known.
        let same = try plan(1, PixelRect(x: 0, y: 0, width: 0, height: 0))
        #expect(same.search == nil && same.isSearched)
        #expect(
          try plan(2, area).search?.codeArea == PixelRect(x: 204, y: 0, width: 223, height: 142))
        #expect(try plan(3, second.area).search?.codeArea == second.area)
        // Now and then, the whole frame is searched anyway.
        let parts = try (4..<40).filter { try plan($0, area).search?.codeArea == second.area }
        #expect(parts == [15, 27, 39])
      }
    }
  }
}
