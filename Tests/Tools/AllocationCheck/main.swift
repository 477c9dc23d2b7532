// SPDX-License-Identifier: Apache-2.0

import AllocationCounter
import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import OvercrankV4L2
import TestSupport

// Counts the capture thread's memory allocations, and fails unless there are none after warm-up. An
// allocation can block on the allocator's lock.
//
//   AllocationCheck              records from the synthetic camera and a simulated V4L2 camera, then
//                                runs a session with two cameras, one with three outputs, a movie
//                                beside a preview, and clips with replays
//   AllocationCheck --frames N   the number of frames for the three outputs; default 480
//   AllocationCheck --alone      for an idle machine: the three outputs must lose no frame
//   AllocationCheck --waste      allocates in every hundredth frame on purpose; must fail

/// After this many frames, every buffer was used twice and all lazy constants exist.
let warmUp = 64
let waste = CommandLine.arguments.contains("--waste") ? 100 : 0
let isAlone = CommandLine.arguments.contains("--alone")
let frameCount =
  CommandLine.arguments.firstIndex(of: "--frames")
  .flatMap { CommandLine.arguments.dropFirst($0 + 1).first }.flatMap(Int64.init) ?? 480

/// The directory of the recorded movies, which are removed at the end.
let temporaryDirectory = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"

struct Outcome {
  var frames = 0
  var refused = 0
  var requests: Int64 = 0
}

/// Captures frames and counts allocations.
///
/// A slow writer makes the queue reject frames. Rejecting must not allocate either.
func take(
  _ input: DeviceInput, frames: Int64, isSlow: Bool = false, machine: FakeVideoSystemCalls? = nil
) throws -> Outcome {
  let (counted, driver) = counted(input)
  let queue = try FrameQueue(
    capacity: isSlow ? 1 << 20 : 32 << 20, largestFrame: input.maximumByteCount)
  if let machine { machine.pace { queue.fillLevel < 0.5 } }
  let capture = try CaptureThread.take(
    from: counted, limit: CaptureLimit(frameCount: frames), queue: queue,
    control: CaptureControl())
  var outcome = Outcome()
  var refused = 0
  while let isRefused = queue.withNextFrame({ $0.observation.outcome == .refused }) {
    if isRefused {
      refused += 1
    } else if isSlow {
      // Waits until ten more frames are dequeued, or until no more frames arrive.
      driver.wait(forVisits: 10, upToMilliseconds: 100)
    }
  }
  if let error = capture.end?.error { throw error }
  let requests = driver.requests.dropFirst(warmUp)
  outcome.frames = requests.count
  outcome.refused = refused
  outcome.requests = requests.reduce(0, +)
  return outcome
}

/// Returns an input whose capture thread counts its allocations in the returned driver.
func counted(_ input: DeviceInput) -> (input: DeviceInput, driver: CountingDriver) {
  let driver = CountingDriver(input.driver, waste: waste)
  let counted = DeviceInput(
    device: input.device, format: input.format, driver: driver, delivery: input.delivery,
    negotiatedFrameRate: input.negotiatedFrameRate, maximumByteCount: input.maximumByteCount)
  return (counted, driver)
}

func input(_ name: String, _ mode: String) throws -> DeviceInput {
  let camera = try CaptureDevice.named(name)
  return try DeviceInput(
    device: camera, format: try camera.format(matching: ModeRequest(parsing: mode)))
}

guard allocation_count() >= 0 else {
  print("allocations: a sanitizer has the allocator; nothing was counted")
  exit(0)
}

/// Reads microphone blocks through an output that measures and copies them, and counts allocations.
func listen(blocks: Int) throws -> Outcome {
  let driver = CountingAudio(waste: waste, length: blocks)
  let input = MicrophoneInput(device: try CaptureDevice.named("synthetic"), driver: driver)
  let session = CaptureSession(input)
  let output = AudioDataOutput()
  try session.addOutput(output)
  output.setSampleBufferHandler { _ in }
  try session.startRunning()
  driver.waitForEnd()
  session.stopRunning()
  var outcome = Outcome()
  let requests = driver.requests.dropFirst(warmUp)
  outcome.frames = requests.count
  outcome.refused = Int(output.ledger.dropped[.outOfBuffers] ?? 0)
  outcome.requests = requests.reduce(0, +)
  return outcome
}

/// Captures from two cameras of one session, each with its own output, and counts the allocations of
/// both capture threads.
func captureFromTwoCameras(frames: Int) throws -> Outcome {
  let cameras = try ["640x480@240/mjpg", "320x240@240/grey"].map {
    try counted(input("synthetic", $0))
  }
  let session = CaptureSession()
  var outputs: [VideoDataOutput] = []
  for (camera, _) in cameras {
    let output = VideoDataOutput()
    output.setSampleBufferHandler { _ in }
    try session.addInputWithNoConnections(camera)
    try session.addOutputWithNoConnections(output)
    try session.addConnection(
      CaptureConnection(inputPorts: camera.ports(for: .video), output: output))
    outputs.append(output)
  }
  try session.startRunning()
  for (_, driver) in cameras { driver.wait(forVisits: frames, upToMilliseconds: 60_000) }
  session.stopRunning()
  let requests = cameras.flatMap { $0.driver.requests.dropFirst(warmUp) }
  return Outcome(frames: requests.count, requests: requests.reduce(0, +))
}

/// Prints the outcome of a run and returns whether nothing was allocated.
func isProved(_ name: String, _ outcome: Outcome) -> Bool {
  print(
    "allocations: \(name): \(outcome.requests) in \(outcome.frames) frames after warm-up"
      + (outcome.refused > 0 ? ", \(outcome.refused) refused by a full queue" : ""))
  return outcome.frames > 200 && outcome.requests == 0
}

var proofs: [Bool] = []
for mode in ["640x480@240/mjpg", "640x480@240/yuyv", "320x240@960/grey"] {
  proofs.append(
    isProved("synthetic \(mode)", try take(input("synthetic", mode), frames: 480)))
}
// This camera waits for a slow writer. Waiting must not allocate either.
let waiting = try take(
  input("synthetic:640x480@240?pace=max", "/yuyv"), frames: 480, isSlow: true)
proofs.append(isProved("synthetic, waiting for the writer", waiting) && waiting.refused == 0)
let slow = try take(input("synthetic", "640x480@240/yuyv"), frames: 48, isSlow: true)
proofs.append(isProved("synthetic, writer too slow", slow) && slow.refused > 0)
// A simulated V4L2 camera with lost, damaged and miscounted frames.
let machine = try FakeVideoSystemCalls("hfr-usb seed=7 faults=1% jitter=0.1")
try DeviceSystem.$calls.withValue(machine) {
  proofs.append(
    isProved(
      "V4L2 640x360@240/mjpg with faults",
      try take(input("/dev/fakevideo0", "640x360@240/mjpg"), frames: 5_000, machine: machine)))
}
proofs.append(isProved("live analysis, the whole process", try LiveFrames.look(frames: 480)))
proofs.append(isProved("microphone", try listen(blocks: 2_000)))
proofs.append(isProved("two cameras", try captureFromTwoCameras(frames: 240)))
let three = try ThreeOutputs(frames: frameCount)
print(three.description)
proofs.append(isProved("three outputs, 1280x720@240/mjpg", three.outcome))
proofs.append(three.isAccounted && (!isAlone || three.lost == 0))
let previewed = try PreviewedTake(frames: 480)
print(previewed.description)
proofs.append(isProved("movie and preview, 640x480@240/mjpg", previewed.outcome))
proofs.append(previewed.isAccounted && (!isAlone || previewed.lost == 0))
let replayed = try ReplayedClips()
print(replayed.description)
proofs.append(isProved("clips with replays, 1280x720@240/mjpg", replayed.outcome))
proofs.append(replayed.isAccounted && (!isAlone || replayed.lost == 0))
exit(proofs.allSatisfy { $0 } ? 0 : 1)
