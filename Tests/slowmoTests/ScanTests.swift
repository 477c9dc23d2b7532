// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The command `scan`, and codes in recordings.
struct ScanTests {
  private let scratch: Scratch
  private let movie: String

  /// Makes a movie of a QR code that moves by 2 of 640 pixels per frame.
  init() async throws {
    scratch = try Scratch()
    movie = scratch.file("moving.mov")
    let set = try await CodeFrames("--only", "qr", "lap 5")
    try await set.writeMovie(movie, count: 24)
  }

  private func objects(_ lines: String) throws -> [[String: Any]] {
    try lines.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  @Test func `Each output line of scan describes one code in one frame`() async throws {
    let scanned = try await slowmo("scan", movie, "--overlay", scratch.file("marked"))
    #expect(scanned.status == 0, "\(scanned.errors)")
    let found = try objects(scanned.output)
    #expect(found.map { $0["frame_index"] as? Int } == Array(0..<24))
    for (index, object) in found.enumerated() {
      #expect(object["text"] as? String == "lap 5" && object["type"] as? String == "qr")
      #expect(object["bytes"] as? String == "6c61702035")
      let time = try #require(object["pts_ns"] as? Int)
      #expect(abs(time - index * 1_000_000_000 / 240) <= 1)
      let bounds = try #require(object["bounds"] as? [Double])
      #expect(abs(bounds[0] + bounds[2] / 2 - (0.5 - Double(index) / 320)) < 0.01)
    }
    let line = try #require(scanned.output.split(separator: "\n").first)
    let documents = DocumentTests()
    #expect(try await documents.misfit(String(line), verb: "scan.object", scratch) == nil)
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.file("marked"))
    #expect(names.count == 24 && names.contains("frame_000023.svg"))
    let svg = try String(contentsOfFile: scratch.file("marked/frame_000023.svg"), encoding: .utf8)
    #expect(svg.contains("<polygon points=") && svg.contains(">qr lap 5</text>"))
    // The images exist already and are not replaced.
    let again = try await slowmo("scan", movie, "--overlay", scratch.file("marked"))
    #expect(again.status == 73, "\(again.errors)")
    // A part of the frame is searched for other types of code, with one JSON document as output.
    let part = try await slowmo(
      "scan", movie, "--range", "12f..18f", "--agreement", "1", "--json")
    let all = try #require(try part.document()["objects"] as? [[String: Any]])
    #expect(all.map { $0["frame_index"] as? Int } == Array(12..<18))
    #expect(try await documents.misfit(part.output, verb: "scan", scratch) == nil)
    #expect(try part.document()["searched_count"] as? Int == 6)
    // A limited search says so. The code is followed in the frames between, and from the first on.
    let few = try await slowmo("scan", movie, "--passes", "12", "--agreement", "2")
    #expect(try objects(few.output).map { $0["frame_index"] as? Int } == Array(0..<24))
    #expect(few.errors.contains("2 of 24 frames were searched as a whole for each type, 22 in"))
    #expect(!scanned.errors.contains("of 24 frames"))
    let slow = try await slowmo("scan", movie, "--processor-share", "100%")
    #expect(slow.output == scanned.output)
    let none = try await slowmo("scan", movie, "--types", "ean13,code128")
    #expect(none.status == 0 && none.output.isEmpty)
  }

  @Test func `Scanning a file camera examines each frame`() async throws {
    let scanned = try await slowmo("scan", "file:\(movie)?pace=max", "--json")
    #expect(scanned.status == 0, "\(scanned.errors)")
    let document = try scanned.document()
    let found = try #require(document["objects"] as? [[String: Any]])
    #expect(found.map { $0["frame_index"] as? Int } == Array(1..<24))
    // The driver of a file camera reports times in whole microseconds.
    let time = try #require(found.first?["pts_ns"] as? Int)
    #expect(abs(time - 4_167_000) < 1_000)
    #expect(document["examined_count"] as? Int == 24 && document["frame_count"] as? Int == 24)
    #expect(document["searched_count"] as? Int == 2)
    let all = try await slowmo("scan", "file:\(movie)?pace=max", "--passes", "240", "--json")
    #expect(try all.document()["searched_count"] as? Int == 24)
  }

  @Test func `A recording stores each code as metadata of its frame`() async throws {
    let take = scratch.file("take.mov")
    let recorded = try await slowmo(
      "record", "file:\(movie)?pace=max", "-o", take, "--metadata", "codes", "--json")
    #expect(recorded.status == 0, "\(recorded.errors)")
    let search = try #require(try recorded.document()["metadata_search"] as? [String: Int])
    #expect(search == ["frame_count": 24, "examined_count": 24, "searched_count": 2])
    #expect(try await DocumentTests().misfit(recorded.output, verb: "record", scratch) == nil)
    let info = try await slowmo("info", take, "--json").document()
    let timed = try #require(info["timed_metadata"] as? [String: Any])
    #expect(timed["keys"] as? [String] == ["com.overcrank.code"])
    // The last metadata values may come after the end of the movie.
    let count = try #require(timed["count"] as? Int)
    #expect((20...23).contains(count))
    let table = try await slowmo("frames", take, "--csv", "-").output.split(separator: "\n")
    #expect(table[0].hasSuffix(",duplicate,codes") && table.count == 25)
    #expect(table[1].hasSuffix(",0,") && table[2].hasSuffix(",0,\"qr:lap 5\""))
    let plain = try await slowmo("frames", movie, "--csv", "-").output
    #expect(!plain.contains("codes"))
  }

  @Test func `Faces keep an id and are recorded together with codes`() async throws {
    let faces = scratch.file("faces.mov")
    try await FaceImages().writeMovie(faces, of: "2008_001009", count: 8, step: 2)
    let scanned = try await slowmo(
      "scan", faces, "--types", "faces", "--overlay", scratch.file("boxes"))
    #expect(scanned.status == 0, "\(scanned.errors)")
    let found = try objects(scanned.output)
    #expect(found.count == 16)
    for (index, object) in found.enumerated() {
      #expect(object["type"] as? String == "face" && object["frame_index"] as? Int == index / 2)
      #expect(object["text"] is NSNull && object["bytes"] as? String == "")
      // The labels of this image have roll angles of -10.1 and -12.5 degrees.
      let roll = try #require(object["roll_degrees"] as? Double)
      #expect(abs(roll + 11) < 9, "\(roll)")
      let yaw = object["yaw_degrees"] as? Double
      #expect(object["yaw_degrees"] is NSNull || yaw.map { [-45, 0, 45].contains($0) } == true)
    }
    #expect(Set(found.compactMap { $0["face_id"] as? Int }) == [1, 2])
    let line = try #require(scanned.output.split(separator: "\n").first)
    #expect(try await DocumentTests().misfit(String(line), verb: "scan.object", scratch) == nil)
    let svg = try String(contentsOfFile: scratch.file("boxes/frame_000007.svg"), encoding: .utf8)
    #expect(svg.contains(">face 1</text>") && svg.contains(">face 2</text>"))
    #expect(svg.matches(of: /transform="rotate\(-\d/).count == 2, "\(svg)")
    // The movie contains no code, so the table has a column of faces and none of codes.
    let take = scratch.file("take.mov")
    let recorded = try await slowmo(
      "record", "file:\(faces)?pace=max", "-o", take, "--metadata", "codes,faces", "--json")
    #expect(recorded.status == 0, "\(recorded.errors)")
    let info = try await slowmo("info", take, "--json").document()
    let timed = try #require(info["timed_metadata"] as? [String: Any])
    #expect(timed["keys"] as? [String] == ["com.overcrank.face"])
    let table = try await slowmo("frames", take, "--csv", "-").output.split(separator: "\n")
    #expect(table[0].hasSuffix(",duplicate,faces") && table.count == 9)
    let bounds = #/,0,"[12]:0\.\d+( 0\.\d+){3}; [12]:0\.\d+( 0\.\d+){3}"/#
    #expect(table[2].firstMatch(of: bounds) != nil, "\(table[2])")
  }

  @Test func `A damaged face model file is rejected`() async throws {
    let faces = scratch.file("faces.mov")
    try await FaceImages().writeMovie(faces, of: "2008_001009", count: 2, step: 2)
    let own = try await slowmo("scan", faces, "--types", "faces")
    let model = try await slowmo(
      "scan", faces, "--types", "faces", "--face-model", FaceImages.model)
    #expect(model.status == 0 && model.output == own.output && !own.output.isEmpty)
    _ = try scratch.write([], as: "empty.svm")
    _ = try scratch.write(Array(try bytes(of: FaceImages.model).prefix(999)), as: "short.svm")
    for (name, status, code) in [
      ("empty.svm", 65, "invalid_data"), ("short.svm", 65, "invalid_data"),
      ("missing.svm", 66, "file_not_found"), ("faces.mov", 65, "invalid_data"),
    ] {
      for arguments in [
        ["scan", faces, "--types"], ["record", "file:\(faces)", "-o", "out.mov", "--metadata"],
        ["scan", "file:\(faces)", "--dry-run", "--types"],
        ["record", "file:\(faces)", "-o", "out.mov", "--dry-run", "--metadata"],
      ] {
        let finished = try await run(
          slowmoPath, arguments + ["faces", "--face-model", scratch.file(name), "--json"],
          in: scratch.path)
        #expect(Int(finished.status) == status, "\(arguments) \(name): \(finished.output)")
        let error = try #require(try finished.document()["error"] as? [String: Any])
        #expect(error["code"] as? String == code)
        #expect((error["message"] as? String)?.contains(name) == true, "\(error)")
        #expect(!FileManager.default.fileExists(atPath: scratch.file("out.mov")))
      }
    }
    for arguments in [["scan", faces], ["record", "file:\(faces)", "-o", "out.mov"]] {
      let finished = try await run(
        slowmoPath, arguments + ["--face-model", FaceImages.model], in: scratch.path)
      #expect(finished.status == 64)
    }
  }

  @Test func `Invalid scan options fail with their exit codes`() async throws {
    for arguments in [
      ["--types", "cats"], ["--agreement", "0"], ["--mode", "@240"],
      ["--range", "0..1", "-t", "1"], ["--passes", "0"],
      ["--processor-share", "0%"], ["--processor-share", "101%"], ["--processor-share", "1"],
    ] {
      #expect(try await run(slowmoPath, ["scan", movie] + arguments).status == 64, "\(arguments)")
    }
    #expect(try await slowmo("scan", scratch.file("missing.mov")).status == 66)
    // Without slowmo-full, the error names the missing component.
    let alone = scratch.file("slowmo")
    try FileManager.default.copyItem(atPath: slowmoPath, toPath: alone)
    for arguments in [
      ["scan", movie], ["record", "synthetic", "-o", "a.mov", "--metadata", "codes"],
    ] {
      let finished = try await run(alone, arguments + ["--json"], in: scratch.path)
      #expect(finished.status == 69)
      let error = try #require(try finished.document()["error"] as? [String: Any])
      #expect(error["code"] as? String == "missing_component")
    }
  }

  @Test func `Control characters in a scanned code are escaped in output`() async throws {
    let hostile = scratch.file("hostile.mov")
    let set = try await CodeFrames("--only", "qr", #"a\x1b\x5b2J\xc2\x9b31mb"#)
    try await set.writeMovie(hostile, count: 3)
    let scanned = try await slowmo("scan", hostile)
    let bytes = Array(scanned.output.utf8)
    #expect(!bytes.contains(0x1B) && !bytes.contains(0xC2), "\(scanned.output)")
    let found = try objects(scanned.output)
    #expect(found.count == 3 && found[0]["bytes"] as? String == "611b5b324ac29b33316d62")
    #expect(found[0]["text"] as? String == "a\u{1B}[2J\u{9B}31mb")
  }
}
