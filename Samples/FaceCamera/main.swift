// SPDX-License-Identifier: Apache-2.0

// Prints each face that a camera shows, with the face id, when the face appears. Draws the face boxes
// of the frame with the most faces into faces.svg, on top of the camera image faces.jpg. A box rotates
// with the roll of the face, and gets narrower with the yaw. If the camera supports regions of
// interest, its exposure and focus follow the largest face, or stay at a point of the image from 0,0
// to 1,1. Ends with Ctrl-C, or at the end of a file camera.
//
//   FaceCamera [DEVICE] [X,Y]
import Glibc
import Overcrank
import OvercrankRecognition
import Synchronization

let name = CommandLine.arguments.dropFirst().first ?? "cam0"
let device = try CaptureDevice.named(name)
let session = CaptureSession(try DeviceInput(device: device, format: device.fastestFormat()))
let preview = try VideoPreview(session: session)
let output = try MetadataOutput(session: session, types: [.face])
// A file camera has no controls.
let follower = (try? CameraControls(device: device)).map(PointOfInterestFollower.init)
let tap = CommandLine.arguments.dropFirst(2).first?.split(separator: ",").compactMap { Double($0) }

struct Seen {
  var ids: Set<Int64> = []
  var maximumFaces: [MetadataObject] = []
}
let seen = Mutex(Seen())

/// Stores the newest image, unless it is already stored.
func keepImage() {
  let frame = try? preview.nextFrame(as: .bgra, maximumWidth: 640, maximumHeight: 360)
  guard let bytes = try? frame?.image.jpegData(), let file = fopen("faces.jpg", "wb")
  else { return }
  fwrite(bytes, 1, bytes.count, file)
  fclose(file)
}

output.setMetadataObjectsHandler { frame in
  guard let view = preview.geometry(viewWidth: 640, viewHeight: 360) else { return }
  _ = try? follower?.follow(frame)
  seen.withLock { seen in
    let faces = frame.objects.map { $0.transformed(by: view) }
    if faces.count > seen.maximumFaces.count {
      seen.maximumFaces = faces
      keepImage()
    }
    for face in faces {
      guard let id = face.faceID, seen.ids.insert(id).inserted else { continue }
      print("face \(id) at \(Int(face.bounds.x)),\(Int(face.bounds.y))")
    }
  }
}
let events = session.events
try session.startRunning()
if let tap, tap.count == 2 {
  try follower?.setTappedPoint(Point(x: tap[0], y: tap[1]))
}
for await event in events where event == .didStopRunning { break }
while output.ledger.waiting > 0 { usleep(1_000) }

let boxes = seen.withLock { $0.maximumFaces }.map { face in
  // An unknown angle counts as zero. The box of a face that looks aside is narrower.
  let (bounds, roll) = (face.bounds, face.rollAngle ?? 0)
  let part = cos((face.yawAngle ?? 0) * .pi / 180)
  let middle = "\(bounds.x + bounds.width / 2) \(bounds.y + bounds.height / 2)"
  return "<rect x=\"\(-bounds.width / 2)\" y=\"\(-bounds.height / 2)\" width=\"\(bounds.width)\" "
    + "height=\"\(bounds.height)\" fill=\"none\" stroke=\"#00c853\" "
    + "transform=\"translate(\(middle)) rotate(\(roll)) scale(\(part) 1)\"/>"
}
// The SVG view fits the whole image, as a preview does.
let head = [
  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"360\">",
  "<image href=\"faces.jpg\" width=\"640\" height=\"360\"/>",
]
let svg = (head + boxes + ["</svg>"]).joined(separator: "\n")
if let file = fopen("faces.svg", "w") {
  fputs(svg + "\n", file)
  fclose(file)
}
let ledger = output.ledger
print("examined \(ledger.examined) of \(ledger.offered) frames")
