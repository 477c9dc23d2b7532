import Capture
import FormatDiscovery
import MediaTiming
import Recording
@main struct Slowmo { static func main() throws {
  let a = CommandLine.arguments
  let f = CaptureFormat(id: "x", maxFrameRate: try FrameRate(Int64(a[3])!, 1), width: Int(a[1])!, height: Int(a[2])!, fourcc: "MJPG")
  let s = try CaptureSession(device: CaptureDevice(path: nil, id: "synthetic", kind: .synthetic), format: f)
  var st = RecordingSettings(path: a[4]); st.overwrites = true
  st.limit = CaptureLimit(duration: MediaTime(seconds: Int64(a[5])!))
  let r = try MovieFileOutput(session: s, settings: st).record()
  print(r)
} }
