// SPDX-License-Identifier: Apache-2.0

// The workflow of the SloPoke sample (WWDC 2013, session 610), call by call. Locks the frame
// duration of the fastest format, records a movie, and slows down the middle of the movie. Plays the
// result with each pitch algorithm and at several speeds, and exports it by two methods.
//
//   SloPoke [DEVICE]
import Overcrank

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:1280x720@240"
let camera = try CaptureDevice.named(name)

/// Opens the camera in its fastest format, with a locked frame duration.
func openAtHighestRate(_ camera: CaptureDevice) throws -> DeviceInput {
  var locked = try camera.lockForConfiguration()
  let fastest = try camera.fastestFormat()
  try locked.setActiveFormat(fastest)
  try locked.setActiveVideoFrameDuration(fastest.minFrameDuration)
  return try locked.makeInput()
}

let session = CaptureSession()
session.beginConfiguration()
try session.addInput(openAtHighestRate(camera))
var settings = RecordingSettings(path: "slopoke.mov")
settings.limit = CaptureLimit(duration: MediaTime(seconds: 3))
let movie = MovieFileOutput(settings: settings)
try session.addOutput(movie)
try session.commitConfiguration()
let report = try movie.record()
print("recorded \(report.ledger.stored) frames, \(report.ledger.dropped) missing")

// The composition contains the whole asset, with the second from 1 to 2 at a lower speed.
let asset = try Asset(path: "slopoke.mov")
let source = try asset.mediaSource()
let middle = try TimeRange(start: MediaTime(seconds: 1), duration: MediaTime(seconds: 1))

func composition(middleAt speed: Speed) throws -> Composition {
  var composition = Composition()
  try composition.insertTimeRange(
    try TimeRange(duration: source.duration), of: source, at: .zero)
  try composition.scaleTimeRange(middle, toDuration: MediaTime(middle.duration * speed.stretch))
  return composition
}

let clock = MonotonicHostClock()

/// Shows a player's frames for a quarter of a second, as a screen would at 60 Hz.
///
/// A busy machine may need longer for the first frame. Returns the indices of the shown frames.
func watch(_ player: Player) throws -> Set<Int> {
  while player.state == .seeking {
    clock.sleep(until: try MediaTime(clock.now + MediaTime(1, over: 1_000)))
  }
  var shown: Set<Int> = []
  var refreshCount = 0
  while refreshCount < 15 || shown.isEmpty {
    refreshCount += 1
    let refresh = try MediaTime(clock.now + MediaTime(nanoseconds: 16_666_667))
    if let frame = player.frame(at: refresh), frame.isCurrent { shown.insert(frame.index) }
    clock.sleep(until: refresh)
  }
  return shown
}

// Without a sound card, playback follows the clock of the machine.
var output = PlayerSettings()
output.audioSink = ALSAAudioSink()
let player = try Player(composition(middleAt: Speed(1, over: 8)), of: [asset], settings: output)
for algorithm in [AudioTimePitchAlgorithm.lowQuality, .timeDomain, .spectral, .varispeed] {
  player.algorithm = algorithm
  player.seek(to: middle.start)
  try player.setRate(1)
  print("played \(try watch(player).count) frames with \(algorithm.rawValue)")
}
for speed in [Speed(1, over: 2), Speed(1, over: 4), Speed(1, over: 8)] {
  // Playback continues at the same source time, with the middle at another speed.
  try player.replaceComposition(composition(middleAt: speed))
  player.seek(to: middle.start)
  try player.setRate(1)
  print("played \(try watch(player).count) frames at \(speed)")
}
player.close()

// One export keeps the original frames and times. The other one has a constant 30 fps, which every
// player supports.
let export = ExportSession(try composition(middleAt: Speed(1, over: 8)), of: asset)
var passthrough = ExportSettings(path: "slopoke-passthrough.mov", mode: .passthrough())
passthrough.audioTimePitchAlgorithm = .spectral
try export.export(passthrough)
var constant = ExportSettings(path: "slopoke-30fps.mp4", mode: .constant(30))
constant.audioTimePitchAlgorithm = .varispeed
try export.export(constant)
print("exported slopoke-passthrough.mov and slopoke-30fps.mp4")
