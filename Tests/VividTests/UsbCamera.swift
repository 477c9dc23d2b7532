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

  static let whyNot: Comment = "no emulated USB camera here: run Tests/Tools/Lab/run-tests.sh"

  /// Whether the endpoint is a bulk endpoint, and not an isochronous one.
  var isBulk = false
  var rate = 240
  /// The relative error of the camera's clock in parts per million.
  var ppm = 0
  var bytes = 20_000
  /// The faults by the number of their frame, such as `packets:3`.
  var faults: [Int: String] = [:]
  /// Whether the driver also delivers damaged frames (the parameter `nodrop` of `uvcvideo`).
  var deliversDamaged = false

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

  /// Plugs the camera in, records a take, and unplugs the camera.
  func record(seconds: Double, file: String) async throws -> Take {
    // udev does not run here, so only root may use the new node. The node is found by its name,
    // because its number depends on the other cameras.
    let script = """
      camera=$1 slowmo=$2 file=$3 mode=$4 seconds=$5 nodrop=$6
      shift 6
      echo $nodrop >/sys/module/uvcvideo/parameters/nodrop || exit 1
      rm -f "$file"
      "$camera" --log "$file.log" "$@" &
      plugged=$!
      node=
      for attempt in $(seq 100); do
        for entry in /sys/class/video4linux/*; do
          if grep -q '^Emulated' $entry/name && [ $(cat $entry/index) = 0 ]; then
            node=/dev/${entry##*/}
          fi
        done
        [ -z "$node" ] || break
        sleep 0.1
      done
      "$slowmo" record "$node" -o "$file" --json --progress none --mode "$mode" -t "$seconds" \
        --audio none
      status=$?
      kill $plugged
      wait $plugged
      exit $status
      """
    var options = ["--bytes", "\(bytes)", "--ppm", "\(ppm)"] + (isBulk ? ["--bulk"] : [])
    for (frame, fault) in faults.sorted(by: { $0.key < $1.key }) {
      options += ["--fault", "\(frame):\(fault)"]
    }
    let finished = try await run(
      "bash",
      [
        "-c", script, "bash", Self.program ?? "", slowmoPath, file, "640x480@\(rate)/mjpg",
        "\(seconds)", deliversDamaged ? "1" : "0",
      ] + options)
    try #require(finished.status == 0, "\(finished.output)\(finished.errors)")
    let log = try String(contentsOfFile: "\(file).log", encoding: .utf8)
    var frames: [(number: Int, microseconds: Int64)] = []
    var overruns: [Int] = []
    for line in log.split(separator: "\n") {
      let words = line.split(separator: " ")
      // The log of each stream begins with this line. The last stream is that of the take.
      if words[0] == "start" { (frames, overruns) = ([], []) }
      guard words[0] == "frame", let number = Int(words[1]), let time = Int64(words[2]) else {
        continue
      }
      frames.append((number, time))
      if words[3] == "overrun" { overruns.append(number) }
    }
    return Take(
      document: try finished.document(), firstFrame: try #require(frames.first).number,
      frames: frames, overruns: overruns)
  }
}

extension UsbCamera.Take {
  /// The number of missing and damaged frames in the gaps that begin at most `window` periods after a
  /// frame of the camera.
  func missing(after frame: Int, within window: Int, rate: Int) throws -> Int {
    let gaps = try #require(document["gaps"] as? [[String: Any]])
    let slot = frame - firstFrame
    var sum = 0
    for gap in gaps {
      let time = try #require(gap["at_ns"] as? Int)
      let count = try #require(gap["count"] as? Int)
      let place = (Double(time) * Double(rate) * 1e-9).rounded()
      if place >= Double(slot - 4), place < Double(slot + window) { sum += count }
    }
    return sum
  }
}
