import Overcrank

let camera = try CaptureDevice.named("synthetic:640x480@240")
let session = try CaptureSession(camera)
var take = RecordingSettings(path: "take.mov")
take.limit = CaptureLimit(duration: MediaTime(seconds: 2))
let report = try MovieFileOutput(session: session, settings: take).record()
print("stored \(report.ledger.stored) of \(report.ledger.expected) frames")
let asset = try Asset(path: "take.mov")
var slow = try Composition(asset)
try slow.setSpeed(Speed(1, over: 8), in: TimeRange(duration: MediaTime(seconds: 1)))
try ExportSession(slow, of: asset).export(ExportSettings(path: "slow.mov", mode: .passthrough()))
