// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2

extension CaptureDevice {
  /// Finds the device with a name.
  ///
  /// | Name | Meaning |
  /// |---|---|
  /// | `/dev/video0` | a device node, or a link to it |
  /// | `cam0` | the index in ``discover()`` |
  /// | `usb-046d_` | part of an id |
  /// | `synthetic:1280x720@240?drop=5%&seed=7` | the synthetic camera, with an optional mode and faults |
  /// | `file:clip.mp4?pace=max` | a file played as a camera |
  /// | `hw:0,1` | a microphone |
  ///
  /// The synthetic camera shows a ball that bounces, a stop-watch and the frame number. Its audio
  /// clicks at each contact of the ball with the ground. Its options:
  ///
  /// | Option | Meaning |
  /// |---|---|
  /// | `height=0.8` | how high the ball rises, 0.01 to 1.3 meters; 1.226 by default |
  /// | `period=0.5` | the time between two contacts, 0.1 to 60 seconds; 1 by default |
  /// | `scene=pattern` | moving stripes instead of the ball |
  /// | `drop=5%`, `seed=7` | the share of frames to drop, and the seed that selects them |
  /// | `pace=max` | frames as fast as the program reads them, not at the frame rate |
  /// | `counter=/dev/shm/frames` | a file of eight bytes that counts the delivered frames |
  ///
  /// If part of an id fits exactly one camera, it selects that camera, even if it also fits
  /// microphones: a webcam's microphone has nearly the same id as its camera.
  ///
  /// A device with several inputs accepts `?input=3`, a number or part of the input's name. An
  /// input such as HDMI accepts timings: `timings=query` (those of the detected signal),
  /// `timings=index=3` (from the driver's list) or `timings=cvt,width=640,height=480,fps=120`, to
  /// which `reduced-blanking=1` or `2` may be added. Example: `/dev/video0?input=3&timings=query`.
  /// These options take effect when the device is next used, and they persist. Without them, input
  /// and timings stay unchanged. If the named device is missing, no other one is used in its place.
  ///
  /// - Throws: `MediaError` with `.deviceNotFound`, `.noPermission`, `.deviceLost`; `.fileNotFound`
  ///   or `.invalidData` for a file; `.notACaptureDevice` for a device without video; `.badName`
  ///   for an ambiguous name or an unknown option.
  public static func named(_ name: String) throws(MediaError) -> CaptureDevice {
    if let camera = try SyntheticCamera(parsing: name) { return CaptureDevice(camera, id: name) }
    if let camera = try FileCamera(parsing: name) { return try file(camera, name) }
    if let node = AudioNode(hardwareName: name) { return try microphone(node) }
    let (position, choice) = try InputChoice.split(name)
    let device =
      position.contains("/")
      ? try node(position) : try find(position, among: discover().devices)
    guard let choice, device.kind != .v4l2 else { return device.choosing(choice) }
    throw MediaError(
      .badName, "\(device.id) has no inputs to choose from: ?\(choice.text)",
      recovery: "leave that out")
  }

  /// Finds a device in a list by its index in the list (`cam0`), its id or part of its id.
  static func find(
    _ name: String, among devices: [CaptureDevice]
  ) throws(MediaError) -> CaptureDevice {
    if name.hasPrefix("cam"), let index = UInt32(name.dropFirst("cam".count)) {
      guard let device = devices.dropFirst(Int(index)).first else {
        throw MediaError(
          .deviceNotFound, "no device is named \(name): \(devices.count) devices are present",
          recovery: Recovery("choose a device that is listed", .listDevices))
      }
      return device
    }
    if let device = devices.first(where: { $0.id == name }) { return device }
    let all = name.isEmpty ? [] : devices.filter { $0.id.contains(name) }
    let cameras = all.filter { $0.media.contains(.video) }
    let matches = cameras.isEmpty ? all : cameras
    guard let device = matches.first else { throw noDevice(name) }
    guard matches.count == 1 else {
      throw MediaError(
        .badName, "\"\(name)\" is part of the ids of \(matches.count) devices",
        recovery: "write more of an id: \(matches.map(\.id).joined(separator: ", "))")
    }
    return device
  }

  private static func noDevice(_ name: String) -> MediaError {
    if SystemFiles.kind(of: name) == .regular { return isFile(name) }
    if SystemFiles.kind(of: "/dev/\(name)") == .characterDevice {
      return MediaError(
        .deviceNotFound, "no device is named \"\(name)\"",
        recovery: "write the whole path: /dev/\(name)")
    }
    return MediaError(
      .deviceNotFound, "no device is named \"\(name)\"",
      recovery: Recovery("choose a device that is listed", .listDevices))
  }

  private static func isFile(_ path: String) -> MediaError {
    MediaError(
      .notACaptureDevice, "\(path) is a file, not a video device",
      recovery: "play it as a camera with: file:\(path)")
  }

  /// The device whose node is at a path, or at the end of a symbolic link at that path.
  private static func node(_ path: String) throws(MediaError) -> CaptureDevice {
    do throws(DeviceError) {
      let node = try VideoDevice(opening: path)
      if node.capabilities.isVideoCapture {
        return CaptureDevice(node, DeviceIdentity(nodeDirectory: DeviceSystem.calls.nodeDirectory))
      }
    } catch {
      switch SystemFiles.kind(of: path) {
      case .regular: throw isFile(path)
      case .directory, .other:
        throw MediaError(
          .notACaptureDevice, "\(path) is not a video device",
          recovery: Recovery("choose a device that is listed", .listDevices))
      case .characterDevice, nil: throw MediaError(discovering: error)
      }
    }
    throw MediaError(
      .notACaptureDevice, "\(path) is a video device that does not capture video",
      recovery: Recovery("choose another node of the device", .listDevices))
  }

  /// The camera that plays a file.
  ///
  /// Throws if the file does not exist.
  private static func file(
    _ camera: FileCamera, _ name: String
  ) throws(MediaError) -> CaptureDevice {
    switch SystemFiles.kind(of: camera.path) {
    case nil:
      throw MediaError(
        .fileNotFound, "no such file: \(camera.path)", recovery: "check the path")
    case .directory:
      throw MediaError(
        .invalidData, "\(camera.path) is a directory", recovery: "choose a file in it")
    default: return CaptureDevice(camera, id: name)
    }
  }
}
