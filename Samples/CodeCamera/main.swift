// SPDX-License-Identifier: Apache-2.0

// Prints each code that a camera shows, and prints it only once. Each line has the code's position
// in a view of 640x360. Ends with Ctrl-C, or at the end of a file camera.
//
//   CodeCamera [DEVICE]
import Glibc
import Overcrank
import OvercrankRecognition
import Synchronization

let name = CommandLine.arguments.dropFirst().first ?? "cam0"
let camera = try CaptureDevice.named(name)
let input = try DeviceInput(device: camera, format: camera.fastestFormat())
let session = CaptureSession(input)
let preview = try VideoPreview(session: session)
let output = try MetadataOutput(session: session)
// Only the middle of the frame is searched, which takes less processor time.
output.rectOfInterest = Rect(x: 0.1, y: 0.1, width: 0.8, height: 0.8)

let known = Mutex<Set<String>>([])
output.setMetadataObjectsHandler { frame in
  guard let view = preview.geometry(viewWidth: 640, viewHeight: 360) else { return }
  for object in frame.objects {
    guard let text = object.stringValue,
      known.withLock({ $0.insert("\(object.type) \(text)").inserted })
    else { continue }
    let bounds = object.transformed(by: view).bounds
    // A code can contain any characters, also those that control a terminal.
    print("\(object.type.rawValue) \(text.debugDescription) at \(Int(bounds.x)),\(Int(bounds.y))")
  }
}
let events = session.events
try session.startRunning()
for await event in events where event == .didStopRunning { break }
while output.ledger.waiting > 0 { usleep(1_000) }
let ledger = output.ledger
print("examined \(ledger.examined) of \(ledger.offered) frames")
