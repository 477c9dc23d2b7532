// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankCameraControls
import OvercrankCapture
import OvercrankDeviceDiscovery
import TestSupport
import Testing

extension VividTests {
  /// Takes of an emulated USB camera with the kernel's own driver, compared with the camera's log.
  @Suite(.enabled(if: UsbCamera.isPresent, UsbCamera.whyNot))
  struct Usb {
    private func file(_ name: String) -> String { "\(Vivid.directory)/usb-\(name).mov" }

    private static let rates =
      RunSize.isFull
      ? [50, 60, 90, 100, 120, 150, 187, 200, 210, 240, 260, 300, 330, 480] : [240, 480]

    @Test(arguments: rates, [false, true])
    func `No frame is lost at any rate`(rate: Int, isBulk: Bool) async throws {
      let ppm = rate % 20 == 0 ? 300 : -300
      let camera = UsbCamera(isBulk: isBulk, rate: rate, ppm: ppm)
      let take = try await camera.record(seconds: 2, file: file("rate"))
      let ledger = try Vivid.ledger(take.document)
      Vivid.expectSum(ledger)
      #expect(take.overruns.isEmpty)
      #expect(ledger["stored"] == ledger["expected"], "\(ledger)")
      let measured = try #require(take.document["measured_fps_value"] as? Double)
      let (first, last) = (try #require(take.frames.first), try #require(take.frames.last))
      let trueRate =
        Double(take.frames.count - 1) * 1e6 / Double(last.microseconds - first.microseconds)
      let quantum = (take.document["timestamp_quantum_ns"] as? Int).map { Double($0) * 1e-9 } ?? 0
      print(
        "usb: \(rate) fps, bulk \(isBulk): measured \(measured), true \(trueRate), step \(quantum)")
      // Two seconds at 50 fps have too few roundings to show the step of 4 ms.
      #expect(abs(measured / trueRate - 1) <= max(0.0002, (isBulk ? 0 : 0.004) / 2))
      if !isBulk, rate == 240 { #expect(abs(quantum - 0.004) < 0.000_1) }
      if isBulk { #expect(quantum == 0) }
    }

    /// A fault with the frames that it costs.
    private struct Fault {
      let name: String
      /// Whether the fault has a number of packets.
      var hasCount = false
      /// The lost and damaged frames by their class.
      let cost: [String: Int]
      /// The same if the driver delivers damaged frames (the parameter `nodrop` of `uvcvideo`).
      ///
      /// Nil if the parameter makes no difference.
      var costDelivered: [String: Int]?

      func cost(deliversDamaged: Bool) -> [String: Int] {
        deliversDamaged ? costDelivered ?? cost : cost
      }
    }

    // The driver always has a free buffer here, so no loss is lost_kernel, not even one with a gap in the
    // numbers of the driver (Tests/Tools/Lab/UsbCamera).
    private static let isochronousFaults = [
      Fault(name: "skip", cost: ["lost_device": 1]),
      Fault(
        name: "packets", hasCount: true, cost: ["lost_device": 1], costDelivered: ["corrupt": 1]),
      Fault(
        name: "error-bit", hasCount: true, cost: ["lost_device": 1], costDelivered: ["corrupt": 1]),
      Fault(name: "silent", hasCount: true, cost: ["corrupt": 1]),
      Fault(name: "truncate", cost: ["corrupt": 1]),
      Fault(name: "stuck", cost: ["lost_device": 1]),
      Fault(name: "no-end", cost: [:]),
      Fault(name: "mute", cost: ["lost_device": 2]),
      Fault(
        name: "all-packets", cost: ["lost_device": 3],
        costDelivered: ["lost_device": 2, "corrupt": 1]),
      Fault(name: "header", cost: ["lost_device": 1]),
    ]
    private static let oversize = Fault(
      name: "oversize", cost: ["lost_device": 1], costDelivered: ["corrupt": 1])
    private static let bulkFaults = [
      Fault(name: "skip", cost: ["lost_device": 1]),
      Fault(name: "error-bit", cost: ["lost_device": 1], costDelivered: ["corrupt": 1]),
      Fault(name: "truncate", cost: ["corrupt": 1]),
      Fault(name: "stuck", cost: ["lost_device": 1]),
      Fault(name: "late:30", cost: [:]),
    ]

    @Test(arguments: [false, true], [false, true])
    func `Losses equal the log of the camera`(isBulk: Bool, deliversDamaged: Bool) async throws {
      let faults = isBulk ? Self.bulkFaults : Self.isochronousFaults + [Self.oversize]
      // The verification of the rate takes the first frames.
      let places = faults.indices.map { 300 + $0 * 100 }
      let rate = isBulk ? 120 : 210
      var camera = UsbCamera(isBulk: isBulk, rate: rate, deliversDamaged: deliversDamaged)
      for (place, fault) in zip(places, faults) {
        camera.faults[place] = fault.name + (fault.hasCount ? ":3" : "")
      }
      let seconds = Double(places[places.count - 1] + 100) / Double(rate)
      let take = try await camera.record(seconds: seconds, file: file("faults"))
      let ledger = try Vivid.ledger(take.document)
      print("usb: bulk \(isBulk), nodrop \(deliversDamaged): \(ledger.sorted { $0.key < $1.key })")
      Vivid.expectSum(ledger)
      for (place, fault) in zip(places, faults) {
        let found = try take.missing(after: place, within: 90, rate: rate)
        var expected = fault.cost(deliversDamaged: deliversDamaged)
        let overruns = take.overruns.count { $0 > place && $0 < place + 90 }
        if overruns > 0 { expected["lost_device", default: 0] += overruns }
        #expect(found == expected, "\(fault.name), nodrop \(deliversDamaged)")
      }
      let costs = faults.map { $0.cost(deliversDamaged: deliversDamaged) }
      try expect(ledger, costs: costs, overruns: take.overruns.count)
    }

    /// Checks the classes of a ledger.
    private func expect(
      _ ledger: [String: Int64], costs: [[String: Int]], overruns: Int, _ comment: String = ""
    ) throws {
      var expected = ["lost_device": overruns, "lost_kernel": 0, "corrupt": 0]
      for cost in costs { expected.merge(cost, uniquingKeysWith: +) }
      for (name, count) in expected {
        #expect(ledger[name] == Int64(count), "\(name) \(comment): \(ledger)")
      }
      let missing = (ledger["expected"] ?? 0) - (ledger["stored"] ?? 0)
      #expect(missing == Int64(expected.values.reduce(0, +)), "\(comment): \(ledger)")
    }

    @Test(arguments: 0..<RunSize.cases(6, full: 100))
    func `Random losses equal the log of the camera`(seed: Int) async throws {
      var random = SeededGenerator(seed: UInt64(seed) + 640)
      var camera = UsbCamera(rate: [150, 210, 330].randomElement(using: &random) ?? 210)
      camera.bytes = 8_000
      camera.deliversDamaged = Bool.random(using: &random)
      camera.ppm = Int.random(in: -300...300, using: &random)
      var (place, costs, names) = (300, [[String: Int]](), [String]())
      for _ in 0..<8 {
        guard let fault = Self.isochronousFaults.randomElement(using: &random) else { continue }
        let count = fault.hasCount ? ":\(Int.random(in: 1...6, using: &random))" : ""
        camera.faults[place] = fault.name + count
        costs.append(fault.cost(deliversDamaged: camera.deliversDamaged))
        names.append("\(place):\(fault.name)\(count)")
        place += Int.random(in: 40...90, using: &random)
      }
      let take = try await camera.record(
        seconds: Double(place + 60) / Double(camera.rate), file: file("random"))
      let ledger = try Vivid.ledger(take.document)
      Vivid.expectSum(ledger)
      try expect(
        ledger, costs: costs, overruns: take.overruns.count,
        "\(camera.rate) fps, nodrop \(camera.deliversDamaged): \(names)")
    }

    @Test func `A failed transfer costs at most two frames`() async throws {
      var camera = UsbCamera()
      camera.faults[200] = "urb:71"
      let take = try await camera.record(seconds: 2, file: file("transfer"))
      let ledger = try Vivid.ledger(take.document)
      Vivid.expectSum(ledger)
      #expect((ledger["expected"] ?? 0) - (ledger["stored"] ?? 0) <= 2, "\(ledger)")
      #expect((475...485).contains(ledger["expected"] ?? 0))
    }

    @Test func `Each USB camera has its own microphone`() async throws {
      func devices(_ serials: [String?]) async throws -> [[String: Any]] {
        let listed = try await UsbCamera.withPlugged(
          serials.map { serial in
            var camera = UsbCamera()
            camera.serial = serial
            return camera
          }, logs: serials.indices.map { "/tmp/usb-\($0).log" },
          script: "\"$1\" devices --json", arguments: [slowmoPath])
        #expect(listed.status == 0, "\(listed.errors)")
        let all = try #require(try listed.document()["devices"] as? [[String: Any]])
        return all.filter { ($0["name"] as? String)?.hasPrefix("Emulated") == true }
      }
      let known = try await devices(["A1", "B2"])
      let ids = known.compactMap { $0["id"] as? String }
      print("usb: ids \(ids)")
      let names = ["A1", "B2"].map { "usb-Overcrank_Emulated_Camera_\($0)" }
      #expect(Set(ids) == Set(names + names.map { "\($0)-02-pcm0" }))
      #expect(known.allSatisfy { $0["device_type"] as? String == "external" })
      for camera in known where camera["media"] as? [String] == ["video"] {
        #expect(camera["microphone"] as? String == "\(camera["id"] ?? "")-02-pcm0")
      }
      // Without serial numbers, only the ports differ.
      let equal = try await devices([nil, nil])
      let microphones = equal.filter { $0["media"] as? [String] == ["audio"] }
      #expect(
        Set(microphones.compactMap { $0["id"] as? String })
          == Set((1...2).map { "usb-Overcrank_Emulated_Camera-02-pcm0-1-\($0):1.2" }))
    }

    /// The take starts while another program records from the microphone, or as a user who may not
    /// open it.
    @Test(arguments: [
      ("arecord -q -D hw:$card,0 -f dat /dev/null & holder=$!; sleep 0.5", "", "busy"),
      (
        "chmod 666 ${nodes[0]}", "setpriv --reuid=nobody --regid=nogroup --clear-groups",
        "permission"
      ),
    ])
    func `A microphone that cannot be used costs a warning`(
      before: String, wrapper: String, reason: String
    ) async throws {
      let path = file("silent-\(reason)")
      let finished = try await UsbCamera.withPlugged(
        [UsbCamera()], logs: ["\(path).log"],
        script: """
          card=$(sed -n 's/^ *\\([0-9]*\\) .*Emulated.*/\\1/p' /proc/asound/cards | head -n 1)
          slowmo=$1 file=$2 holder=
          rm -f "$file"
          \(before)
          \(wrapper) "$slowmo" record "${nodes[0]}" -o "$file" --json --progress none \\
            --mode 640x480@120/mjpg -t 1
          status=$?
          [ -z "$holder" ] || kill $holder
          (exit $status)
          """, arguments: [slowmoPath, path])
      #expect(finished.status == 0, "\(finished.errors)")
      let document = try finished.document()
      #expect(document["audio"] is NSNull)
      let warnings = try #require(document["warnings"] as? [String])
      print("usb: \(warnings)")
      #expect(warnings.contains { $0.contains("microphone") && $0.lowercased().contains(reason) })
      let ledger = try Vivid.ledger(document)
      #expect(ledger["stored"] == ledger["expected"], "\(ledger)")
    }

    @Test func `A Live Photo of a USB camera has audio`() async throws {
      let path = "/tmp/usb-live"
      let finished = try await UsbCamera.withPlugged(
        [UsbCamera()], logs: ["\(path).log"],
        script: """
          "$1" photo "${nodes[0]}" -o "$2.jpg" --live --mode 640x480@120/mjpg -y >/dev/null &&
            "$1" info "$2.mov" --json
          """, arguments: [slowmoPath, path])
      #expect(finished.status == 0, "\(finished.errors)")
      let audio = try #require(try finished.document()["audio"] as? [String: Any])
      #expect((audio["sample_count"] as? Int ?? 0) > 120_000, "\(audio)")
    }

    @Test(arguments: [(0, false), (500, false), (500, true)])
    func `Automatic exposure is adjusting while its value changes`(
      milliseconds: Int, sendsEvents: Bool
    ) async throws {
      var camera = UsbCamera()
      // Without these options, the driver keeps the first value that it read. A camera that sends
      // events does so from the first opening of its node on.
      if milliseconds > 0 {
        camera.options = ["--adjust", "\(sendsEvents ? milliseconds * 4 : milliseconds)"]
      }
      if sendsEvents { camera.options.append("--events") }
      let answers = try await camera.whilePlugged(log: "/tmp/usb-adjust.log") { node in
        let controls = try CameraControls(device: try CaptureDevice.named(node))
        return try (0..<10).map { _ in try controls.isAdjustingExposure }
      }
      print("usb: adjusting for \(milliseconds) ms: \(answers.map { $0.map { "\($0)" } ?? "nil" })")
      if sendsEvents {
        // The driver still answers with the first value, and only events show the change.
        #expect(answers.first == true)
      } else if milliseconds == 0 {
        #expect(answers.allSatisfy { $0 == nil })
      } else {
        #expect(answers.first == true && answers.last == false)
      }
    }

    private static let audioCases =
      RunSize.isFull ? (0..<10).flatMap { [($0, false), ($0, true)] } : [(0, false), (0, true)]

    /// The microphone clicks at each whole second, and the log has the time of each frame.
    @Test(arguments: audioCases)
    func `The microphone of a camera is recorded in sync`(number: Int, isBulk: Bool) async throws {
      var camera = UsbCamera(isBulk: isBulk, rate: 240, audioPPM: number % 2 == 0 ? 200 : -200)
      camera.audio = nil
      let path = file("audio")
      let seconds = RunSize.isFull ? 12.0 : 3.0
      let take = try await camera.record(
        seconds: seconds, file: path, more: ["--audio-codec", "pcm"])
      try expectSync(of: take, in: path, seconds: seconds)
      let audio = try #require(take.document["audio"] as? [String: Any])
      // A long take measures the difference of the clocks, and states the correction.
      if RunSize.isFull {
        let drift = try #require(audio["drift_ppm"] as? Double)
        #expect(abs(abs(drift) - 200) < 100)
      }
    }

    /// Checks that the clicks of a recorded microphone are at the whole seconds of the guest's clock.
    private func expectSync(of take: UsbCamera.Take, in path: String, seconds: Double) throws {
      let audio = try #require(take.document["audio"] as? [String: Any])
      let quantum = (take.document["timestamp_quantum_ns"] as? Int).map { Double($0) * 1e-9 } ?? 0
      print("usb: \(audio), step \(quantum)")
      #expect((audio["device"] as? String)?.hasPrefix("hw:") == true)
      let rate = try #require(audio["sample_rate"] as? Int)
      let (samples, duration) = (audio["samples"] as? Int, take.document["duration_ns"] as? Int)
      #expect(abs((samples ?? 0) - (duration ?? 0) * (rate / 1_000) / 1_000_000) <= 1)
      var reader = try AudioReader(try Asset(path: path))
      let levels = try reader.samples(from: 0, count: samples ?? 0)[0]
      // The first loud sample of each click; a resampler rings before it.
      var clicks: [Double] = []
      for (index, level) in levels.enumerated() where level > 0.25 {
        if let last = clicks.last, Double(index) / Double(rate) - last < 0.5 { continue }
        clicks.append(Double(index) / Double(rate))
      }
      #expect(abs(clicks.count - Int(seconds)) <= 1, "\(clicks)")
      let ledger = try Vivid.ledger(take.document)
      #expect(ledger["stored"] == ledger["expected"], "\(ledger)")
      let start = Double(take.frames[0].microseconds) * 1e-6
      for click in clicks {
        let error = start + click - (start + click).rounded()
        print("usb: click at \(click) s, \(error * 1e3) ms late")
        #expect(abs(error) <= 0.005 + quantum)
      }
    }

    /// This virtual bus wakes only one of two suspended cameras at a time, and the kernel resets the other.
    @Test func `Two cameras start at the same moment`() async throws {
      let files = [file("first"), file("second")]
      let finished = try await UsbCamera.withPlugged(
        ["A1", "B2"].map { serial in
          var camera = UsbCamera(isBulk: true, rate: 60)
          camera.serial = serial
          return camera
        }, logs: ["/tmp/usb-a.log", "/tmp/usb-b.log"],
        script: """
          slowmo=$1 takes=()
          shift
          for port in 1 2; do
            until grep -q suspended /sys/bus/usb/devices/1-$port/power/runtime_status; do sleep 0.1; done
          done
          for node in ${nodes[*]}; do
            "$slowmo" record $node -o "$1" -y --json --progress none --audio none \
              --mode 640x480@60/mjpg -t 0.5 >"$1.json" &
            takes+=($!)
            shift
          done
          wait ${takes[0]}
          first=$?
          wait ${takes[1]} && [ $first = 0 ] || { cat /tmp/usb-*.mov.json; false; }
          """, arguments: [slowmoPath] + files)
      #expect(finished.status == 0, "\(finished.output)\(finished.errors)")
    }

    @Test func `Two cameras are recorded with their own microphones`() async throws {
      let cameras = [("A1", 200), ("B2", -200)].map { serial, ppm in
        var camera = UsbCamera(isBulk: serial == "B2", rate: 120, audioPPM: ppm)
        camera.serial = serial
        return camera
      }
      let logs = ["/tmp/usb-a.log", "/tmp/usb-b.log"]
      let files = [file("a"), file("b")]
      let finished = try await UsbCamera.withPlugged(
        cameras, logs: logs,
        script: """
          slowmo=$1 takes=()
          shift
          rm -f "$@"
          for node in ${nodes[*]}; do
            "$slowmo" record $node -o "$1" -y --json --progress none --mode 640x480@120/mjpg \\
              -t 3 --audio-codec pcm >"$1.json" &
            takes+=($!)
            until [ -e "$1" ] || ! kill -0 $!; do sleep 0.1; done
            shift
          done
          wait ${takes[0]} && wait ${takes[1]} || { cat /tmp/usb-?.mov.json; false; }
          """, arguments: [slowmoPath] + files)
      try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
      var devices: Set<String> = []
      for (path, log) in zip(files, logs) {
        let json = try Data(contentsOf: URL(fileURLWithPath: "\(path).json"))
        let document = try #require(
          try JSONSerialization.jsonObject(with: json) as? [String: Any])
        let audio = try #require(document["audio"] as? [String: Any])
        devices.insert(try #require(audio["device"] as? String))
        try expectSync(of: try UsbCamera.Take(document: document, log: log), in: path, seconds: 3)
      }
      #expect(devices.count == 2)
    }
  }
}
