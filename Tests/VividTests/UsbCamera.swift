// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A USB camera that a process emulates behind the kernel's `uvcvideo`; see
/// Tests/Tools/Lab/UsbCamera.
struct UsbCamera {
  /// The emulator, or nil outside the emulated machine.
  static let program = ProcessInfo.processInfo.environment["USB_CAMERA"]

  static var isPresent: Bool {
    program != nil && access("/sys/devices/platform/vhci_hcd.0/attach", W_OK) == 0
  }

  /// A raw H.264 stream of 640x480 pixels, with a key frame every half second at 120 fps.
  static let h264 = ProcessInfo.processInfo.environment["USB_CAMERA_H264"] ?? ""

  static let whyNot: Comment = "no emulated USB camera here: run Tests/Tools/Lab/run-tests.sh"

  /// Whether the endpoint is a bulk endpoint, and not an isochronous one.
  var isBulk = false
  /// The frame size and the pixel format, as a mode names them.
  var size = "640x480"
  var format = "mjpg"
  var rate = 240
  /// The relative error of the camera's clock in parts per million.
  var ppm = 0
  /// The relative error of the microphone's clock in parts per million.
  var audioPPM = 0
  var bytes = 20_000
  /// The serial number, or nil for a camera without one.
  var serial: String? = "0001"
  /// The faults by the number of their frame, such as `packets:3`.
  var faults: [Int: String] = [:]
  /// The options of the emulator that have no property here.
  var options: [String] = []
  /// Whether the driver also delivers damaged frames (the parameter `nodrop` of `uvcvideo`).
  var deliversDamaged = false
  /// The value of `--audio`, or nil for the default.
  var audio: String? = "none"

  /// A finished take and the emulator's log of it.
  struct Take {
    let document: [String: Any]
    /// The number of the first frame after the start of the stream.
    let firstFrame: Int
    /// The frames that the camera made or skipped while the take ran: number and time in
    /// microseconds.
    let frames: [(number: Int, microseconds: Int64)]
    /// The numbers of the frames for which the camera had no time.
    let overruns: [Int]
  }

  /// Plugs cameras in, runs a shell script, and unplugs the cameras.
  ///
  /// In the script, `nodes` are the nodes of the cameras, in order, and the arguments start at `$1`.
  /// Each camera writes its log into a file of `logs`.
  static func withPlugged(
    _ cameras: [UsbCamera], logs: [String], script: String, arguments: [String]
  ) async throws -> Finished {
    // udev does not run here, so only root may use the new nodes. They are found by their ports,
    // because their numbers depend on the other cameras. The driver reads its parameter when a camera
    // is plugged in.
    let deliversDamaged = cameras.contains(where: \.deliversDamaged)
    let prelude = """
      echo \(deliversDamaged ? 1 : 0) >/sys/module/uvcvideo/parameters/nodrop
      camera=$1 count=$2
      shift 2
      nodes=()
      plugged=()
      for ((port = 0; port < count; port++)); do
        "$camera" --port $port $1 &
        plugged+=($!)
        shift
      done
      for ((port = 0; port < count; port++)); do
        node=
        for ((attempt = 0; attempt < 100; attempt++)); do
          for entry in /sys/bus/usb/devices/[12]-$((port + 1)):1.0/video4linux/*; do
            [ ! -e $entry ] || read -r index <$entry/index
            [ ! -e $entry ] || [ $index != 0 ] || node=/dev/${entry##*/}
          done
          [ -z "$node" ] || break
          sleep 0.1
        done
        nodes+=($node)
      done
      # The sound card is ready a little later.
      sleep 1
      """
    let end = """
      status=$?
      kill ${plugged[*]}
      wait ${plugged[*]}
      for node in ${nodes[*]}; do
        while [ -e $node ]; do sleep 0.1; done
      done
      exit $status
      """
    let options = zip(cameras, logs).map { camera, log in
      (["--log", log] + camera.emulatorOptions).joined(separator: " ")
    }
    return try await run(
      "bash",
      ["-c", [prelude, script, end].joined(separator: "\n"), "bash", program ?? ""]
        + ["\(cameras.count)"] + options + arguments)
  }

  private var emulatorOptions: [String] {
    var list = ["--bytes", "\(bytes)", "--ppm", "\(ppm)", "--audio-ppm", "\(audioPPM)"] + options
    list += serial.map { ["--serial", $0] } ?? ["--no-serial"]
    if isBulk { list.append("--bulk") }
    if format == "h264" { list += ["--h264", Self.h264] }
    for (frame, fault) in faults.sorted(by: { $0.key < $1.key }) {
      list += ["--fault", "\(frame):\(fault)"]
    }
    return list
  }

  /// Plugs the camera in, calls a closure with its node, and unplugs the camera.
  func whilePlugged<Value: Sendable>(
    log: String, _ body: (String) async throws -> Value
  ) async throws -> Value {
    let (ready, done) = ("\(log).ready", "\(log).done")
    for file in [ready, done] { try? FileManager.default.removeItem(atPath: file) }
    async let plugged = Self.withPlugged(
      [self], logs: [log],
      script: """
        echo ${nodes[0]} >$1.part && mv $1.part $1
        until [ -e $2 ]; do sleep 0.1; done
        """, arguments: [ready, done])
    defer { _ = FileManager.default.createFile(atPath: done, contents: nil) }
    _ = try await run("sh", ["-c", "until [ -e $1 ]; do sleep 0.1; done", "sh", ready])
    let node = try String(contentsOfFile: ready, encoding: .utf8)
    let value = try await body(node.trimmingCharacters(in: .whitespacesAndNewlines))
    _ = FileManager.default.createFile(atPath: done, contents: nil)
    try #require(try await plugged.status == 0)
    return value
  }

  /// Plugs the camera in, records a take, and unplugs the camera.
  func record(seconds: Double, file: String, more: [String] = []) async throws -> Take {
    let log = "\(file).log"
    let script = """
      slowmo=$1 file=$2
      shift 2
      rm -f "$file"
      "$slowmo" record "${nodes[0]}" -o "$file" --json --progress none "$@"
      """
    let milliseconds = Int((seconds * 1_000).rounded(.up))
    let finished = try await Self.withPlugged(
      [self], logs: [log], script: script,
      arguments: [
        slowmoPath, file, "--mode", "\(size)@\(rate)/\(format)", "-t", "\(milliseconds)ms",
      ] + (audio.map { ["--audio", $0] } ?? []) + more)
    try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
    return try Take(document: try finished.document(), log: log)
  }
}

extension UsbCamera.Take {
  init(document: [String: Any], log: String) throws {
    var frames: [(number: Int, microseconds: Int64)] = []
    var overruns: [Int] = []
    for line in try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n") {
      let words = line.split(separator: " ")
      // The log of each stream begins with this line. The last stream is that of the take.
      if words[0] == "start" { (frames, overruns) = ([], []) }
      guard words[0] == "frame", let number = Int(words[1]), let time = Int64(words[2]) else {
        continue
      }
      frames.append((number, time))
      if words[3] == "overrun" { overruns.append(number) }
    }
    self.init(
      document: document, firstFrame: try #require(frames.first).number, frames: frames,
      overruns: overruns)
  }

  /// The missing and damaged frames in the gaps that begin at most `window` periods after a frame of
  /// the camera, by their class.
  func missing(after frame: Int, within window: Int, rate: Int) throws -> [String: Int] {
    let gaps = try #require(document["gaps"] as? [[String: Any]])
    let slot = frame - firstFrame
    var counts: [String: Int] = [:]
    for gap in gaps {
      let time = try #require(gap["at_ns"] as? Int)
      let count = try #require(gap["count"] as? Int)
      let cause = try #require(gap["cause"] as? String)
      let place = (Double(time) * Double(rate) * 1e-9).rounded()
      if place >= Double(slot - 4), place < Double(slot + window) {
        counts[cause, default: 0] += count
      }
    }
    return counts
  }
}
