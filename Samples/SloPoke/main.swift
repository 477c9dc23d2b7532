// SPDX-License-Identifier: Apache-2.0

// The workflow of the SloPoke sample (WWDC 2013, session 610), call by call. Locks the frame
// duration of the fastest format, records a movie, slows down its middle, and exports it in two
// ways.
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

// The composition contains the whole asset, with the second from 1 to 2 stretched eight times.
let asset = try Asset(path: "slopoke.mov")
var composition = Composition()
let source = try asset.mediaSource()
try composition.insertTimeRange(
  try TimeRange(duration: source.duration), of: source, at: .zero)
let middle = try TimeRange(start: MediaTime(seconds: 1), duration: MediaTime(seconds: 1))
try composition.scaleTimeRange(middle, toDuration: MediaTime(seconds: 8))

// One export keeps the original frames and times; the other has a constant 30 fps for every player.
let export = ExportSession(composition, of: asset)
var passthrough = ExportSettings(path: "slopoke-passthrough.mov", mode: .passthrough())
passthrough.audioTimePitchAlgorithm = .spectral
try export.export(passthrough)
var constant = ExportSettings(path: "slopoke-30fps.mp4", mode: .constant(30))
constant.audioTimePitchAlgorithm = .varispeed
try export.export(constant)
print("exported slopoke-passthrough.mov and slopoke-30fps.mp4")
