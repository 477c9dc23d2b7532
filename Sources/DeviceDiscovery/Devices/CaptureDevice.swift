// SPDX-License-Identifier: Apache-2.0

package import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
public import OvercrankRaster
import OvercrankV4L2

/// A camera, a microphone, or a source that simulates a camera.
///
/// Corresponds to `AVCaptureDevice`. The value identifies a device without holding it open, so the
/// device may be lost before it is used.
///
/// ```swift
/// let camera = try CaptureDevice.named("/dev/video0")
/// let format = try camera.fastestFormat()      // 320x180@60/ar24
/// ```
public struct CaptureDevice: Hashable, Sendable, Identifiable {
  /// The kind of hardware or source that a device represents.
  public enum Kind: String, Hashable, Sendable {
    /// A Video4Linux device node.
    case v4l2
    /// The synthetic camera, whose frames this library draws.
    case synthetic
    /// A movie file played as a camera.
    case file
    /// A capture device of a sound card.
    case alsa
  }

  /// The origin of the device's frames or audio: a device node, a generator or a file.
  package enum Source: Hashable, Sendable {
    /// The device node at this path.
    case v4l2(path: String)
    case synthetic(SyntheticCamera)
    case file(FileCamera)
    case alsa(AudioNode)
  }

  /// The persistent identifier of the device.
  ///
  /// It stays the same after a restart. If the device has a serial number, it also stays the same
  /// at another port.
  public internal(set) var id: String
  /// The path of the node or file, or the ALSA name of a microphone (`hw:0,0`).
  ///
  /// Nil for the synthetic camera.
  public let path: String?
  /// The human-readable name of the device.
  public let name: String
  /// The name of the driver.
  public let driver: String
  /// The bus address of the device.
  public let bus: String
  /// The kind of hardware or source.
  public let kind: Kind
  /// The media types that the device provides.
  public let media: [MediaType]
  /// The reason why the device could not be queried, as one line of text; nil if it could be
  /// queried.
  public internal(set) var problem: String?
  /// Whether the device could not be queried because this user lacks permission.
  var isForbidden = false
  /// Whether the device is external, built into the machine, or virtual.
  public internal(set) var deviceType: DeviceType
  /// The direction that the camera faces, if the driver or the firmware reports it.
  public internal(set) var position = Position.unspecified
  /// The clockwise rotation in degrees that shows frames upright while the device is in its normal
  /// orientation.
  ///
  /// It is 0 if the driver does not report how the sensor is mounted.
  public internal(set) var videoRotationAngleForHorizonLevelCapture: Int64 = 0
  package let source: Source
  /// The directory in `/sys` of the USB device that the device is a part of.
  ///
  /// Nil for a device on another bus.
  package let usbDirectory: String?
  /// Other ids by which the device is found, such as those that earlier versions gave it.
  package let formerIDs: [String]
  /// The input options in the device's name, or nil to keep the current settings.
  package private(set) var choice: InputChoice?

  init(id: String, node path: String, name: String, driver: String, bus: String) {
    (self.id, self.path, self.driver, self.bus) = (id, path, driver, bus)
    // V4L2 cuts names after 31 bytes, so a name may end in a space.
    self.name = name.trimmed
    kind = .v4l2
    media = [.video]
    source = .v4l2(path: path)
    formerIDs = []
    let directory = "/sys/class/video4linux/\(path.lastPathComponent)/device"
    usbDirectory = USBLink.deviceDirectory(of: directory)
    let offset = DeviceLocation(of: directory, driver: driver, bus: bus)
    (deviceType, position) = (offset.type, offset.position)
  }

  init(_ camera: SyntheticCamera, id: String) {
    self.init(
      virtual: .synthetic, id, path: nil, name: "Synthetic camera", driver: "synthetic",
      .synthetic(camera))
  }

  init(_ camera: FileCamera, id: String) {
    self.init(
      virtual: .file, id, path: camera.path, name: camera.path.lastPathComponent, driver: "file",
      .file(camera))
  }

  private init(
    virtual kind: Kind, _ id: String, path: String?, name: String, driver: String, _ source: Source
  ) {
    (self.id, self.path, self.name, self.driver) = (id, path, name, driver)
    (self.kind, self.source, bus, media) = (kind, source, "virtual", [.video])
    (usbDirectory, formerIDs) = (nil, [])
    deviceType = .virtual
  }

  init(
    id: String, formerIDs: [String] = [], node: AudioNode, name: String, driver: String, bus: String
  ) {
    self.id = id
    self.formerIDs = formerIDs
    path = node.hardwareName
    (self.name, self.driver, self.bus) = (name, driver, bus)
    kind = .alsa
    media = [.audio]
    source = .alsa(node)
    let card = "/sys/class/sound/card\(node.card)/device"
    usbDirectory = USBLink.deviceDirectory(of: card)
    deviceType = DeviceLocation(of: card, driver: driver, bus: bus).type
  }

  /// The device's name in errors and documents: its path or, without a path, its id.
  public var address: String { path ?? id }

  /// Returns the same device with other input options.
  package func choosing(_ choice: InputChoice?) -> CaptureDevice {
    guard let choice, kind == .v4l2 else { return self }
    var device = self
    device.choice = choice
    return device
  }

  /// The device's name in messages: the path with its options or, without a path, the id.
  var spokenName: String {
    guard kind == .v4l2 || kind == .alsa, let path else { return id }
    return choice.map { "'\(path)?\($0.text)'" } ?? path
  }

  /// Lists the modes of the device, in the driver's order.
  ///
  /// The call only reads, so other programs may stream at the same time. There is one
  /// exception: if the device's name selects an input or timings, the call sets them first. If the
  /// driver supports a range of sizes, only the sizes that ``FormatList/formats`` describes are
  /// listed. The call blocks.
  ///
  /// - Throws: `MediaError` with `.deviceNotFound`, `.noPermission`, `.deviceLost`,
  ///   `.notACaptureDevice`, `.noSignal`; for a file `.fileNotFound` or `.invalidData`.
  public func formats() throws(MediaError) -> [CaptureFormat] { try formatList().formats }

  /// Lists the modes of the device, its inputs, and warnings about invalid driver data.
  ///
  /// - Parameter size: A size to list in addition, if it lies in a range of sizes that the driver
  ///   supports.
  /// - Returns: The modes with their size ranges, and the inputs.
  /// - Throws: `MediaError` as ``formats()`` does.
  public func formatList(
    including size: VideoSize? = nil
  ) throws(MediaError) -> FormatList {
    switch source {
    case .synthetic(let camera): return FormatList(formats: camera.formats)
    case .file(let camera): return FormatList(formats: try camera.formats())
    case .alsa:
      throw MediaError(
        .notACaptureDevice, "\(spokenName) is a microphone, which does not capture video",
        recovery: Recovery("choose a camera", .listDevices))
    case .v4l2(let path):
      let device = try openNode(at: path)
      do throws(CallFailure) {
        let inputs = try InputConnectors(of: device)
        let incoming = try inputs?.incomingSignal(of: device)
        var list = try FormatList(
          asking: device, for: size, incoming: incoming,
          capabilities: FormatCapabilities(reportedBy: device))
        list.inputs = inputs
        return list
      } catch {
        throw MediaError(error, at: .discovering)
      }
    }
  }

  /// The fastest mode that a movie can store, by the rules of ``FormatSelection``.
  ///
  /// - Parameter isWanted: A filter for the modes. Default: all modes.
  /// - Returns: One of ``formats()``.
  /// - Throws: `MediaError` with `.noMatchingFormat` if no mode is suitable, or as ``formats()``
  ///   does.
  public func fastestFormat(
    where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) throws(MediaError) -> CaptureFormat {
    guard let format = FormatSelection.fastest(among: try formats(), where: isWanted) else {
      throw MediaError(
        .noMatchingFormat, "\(spokenName) has no such mode that can be stored",
        recovery: Recovery("choose one of its formats", .listFormats(device: spokenName)))
    }
    return format
  }

  /// The fastest mode that matches a request, at the requested rate.
  ///
  /// A format with a range of rates is narrowed to the requested rate. Reported rates may be
  /// inexact, because drivers simplify fractions. If no rate matches exactly, the nearest one is
  /// therefore accepted if it differs by less than 1/1001, so that 59.94 is not taken for 60. The
  /// synthetic camera matches every size and rate that it can draw. If a device has a range of
  /// sizes, its rates are queried at the requested size.
  ///
  /// - Parameters:
  ///   - request: The requested size, rate and pixel format, each optional.
  ///   - isWanted: A filter for the modes. Default: all modes.
  /// - Returns: The mode. Its ``CaptureFormat/maxFrameRate`` is the rate to set.
  /// - Throws: `MediaError` with `.noMatchingFormat`, whose recovery names the nearest mode, or as
  ///   ``formats()`` does.
  public func format(
    matching request: ModeRequest, where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) throws(MediaError) -> CaptureFormat {
    let offered: [CaptureFormat]
    var sizeRanges: [FrameSizeRange] = []
    if case .synthetic(let camera) = source {
      offered = try camera.formats(for: request)
    } else {
      let list = try formatList(including: request.size)
      offered = list.formats
      sizeRanges = list.sizeRanges
    }
    let wanted = offered.filter(isWanted)
    if let format = request.choose(from: wanted) { return format }
    if let format = offered.first(where: request.matches), !format.isStorable {
      throw MediaError(
        .noMatchingFormat,
        "the pixel format \(format.fourcc) of \(spokenName) cannot be stored"
          + (format.fourcc.separatePlaneCount > 1
            ? ": its \(format.fourcc.separatePlaneCount) planes have an order that no file format has"
            : ""),
        recovery: Recovery("choose another format", .listFormats(device: spokenName)))
    }
    let isUnwanted = request.choose(from: offered) != nil
    throw MediaError(
      .noMatchingFormat,
      "\(spokenName) has no " + (request == .any ? "mode" : "mode \(request)")
        + (isUnwanted ? " that fits the other options" : ""),
      recovery: request.advice(among: wanted, sizeRanges, of: spokenName))
  }
}

extension ModeRequest {
  /// The advice in the error for a request that matches no mode.
  fileprivate func advice(
    among formats: [CaptureFormat], _ sizeRanges: [FrameSizeRange], of device: String
  ) -> Recovery {
    let list = Recovery.Step.listFormats(device: device)
    let sameSize = formats.filter { $0.width == size?.width && $0.height == size?.height }
    if let size, sameSize.isEmpty,
      let range = sizeRanges.first(where: { fourcc.map($0.fourcc.isNamed) ?? true })
    {
      return Recovery(
        "choose \(range.nearest(to: size)), the nearest size of \(range)", list)
    }
    if let rate, let nearest = nearestMode(among: formats) {
      return Recovery("choose \(nearest.id), the nearest to \(rate.modeText)", list)
    }
    if let best = FormatSelection.fastest(among: sameSize, evenBeyondSource: true) {
      return Recovery("choose \(best.id), the fastest of that size", list)
    }
    guard let best = FormatSelection.fastest(among: formats) else {
      return Recovery("choose one of its formats", list)
    }
    return Recovery("choose \(best.id), the fastest", list)
  }
}

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
    guard !name.isEmpty else { throw noDevice(name) }
    // The present ids come before the former ones, and whole ids before parts of them.
    let all =
      [
        devices.filter { $0.formerIDs.contains(name) }, devices.filter { $0.id.contains(name) },
        devices.filter { $0.formerIDs.contains { $0.contains(name) } },
      ].first { !$0.isEmpty } ?? []
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
    do throws(CallFailure) {
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
      case .characterDevice, nil: throw MediaError(error, at: .discovering)
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

  /// An identifier shared by all devices of one model.
  ///
  /// For USB devices it is the vendor and product number, such as `046d:0892`. For other devices it
  /// consists of the names of the driver and the device.
  public var modelID: String {
    guard case .v4l2(let path) = source else { return kind == .alsa ? name : kind.rawValue }
    return Self.usbModel(of: "/sys/class/video4linux/\(path.lastPathComponent)/device/..")
      ?? "\(driver):\(name)"
  }

  /// The vendor and product number in a USB device's sysfs directory, or nil for other directories.
  static func usbModel(of directory: String) -> String? {
    guard let vendor = SystemFiles.firstLine(of: "\(directory)/idVendor"),
      let product = SystemFiles.firstLine(of: "\(directory)/idProduct")
    else { return nil }
    return "\(vendor):\(product)"
  }

  /// Whether the device has a format above 30 frames per second that a movie can store.
  ///
  /// - Throws: `MediaError` as ``formats()`` does.
  public var supportsHighFrameRateCapture: Bool {
    get throws(MediaError) {
      FormatSelection.fastest(among: try formats())?.isHighFrameRate ?? false
    }
  }

  /// The fastest format that a movie can store, if its rate is above 30 frames per second.
  ///
  /// - Throws: `MediaError` with `.noHighFrameRate` if the device has no such format, or as
  ///   ``formats()`` does.
  public func highFrameRateFormat() throws(MediaError) -> CaptureFormat {
    let fastest = FormatSelection.fastest(among: try formats())
    if let fastest, fastest.isHighFrameRate { return fastest }
    throw MediaError(
      .noHighFrameRate, "\(spokenName) has no mode above 30 frames per second",
      recovery: Recovery(
        fastest.map { "choose \($0.id), the fastest" } ?? "choose another camera",
        .listFormats(device: spokenName)))
  }

  /// The default camera or microphone of a type, or nil if there is none.
  ///
  /// Corresponds to `AVCaptureDevice.default(_:for:position:)`. It is never the synthetic camera.
  ///
  /// - Parameters:
  ///   - type: The device type.
  ///   - mediaType: The media type that the device must have. Nil accepts any.
  ///   - position: The direction that the device must face. `.unspecified` accepts any.
  /// - Returns: The default device among those that match, as ``defaultDevice(for:)`` orders them.
  public static func defaultDevice(
    _ type: DeviceType, for mediaType: MediaType?, at position: Position = .unspecified
  ) -> CaptureDevice? {
    best(among: discover([type], for: mediaType, at: position).filter { $0.kind != .synthetic })
  }

  /// Finds the devices of given types, in the order of the types.
  ///
  /// Corresponds to `AVCaptureDevice.DiscoverySession`. The call opens device nodes and may block.
  ///
  /// - Parameters:
  ///   - types: The types in order of preference. Devices of other types are left out.
  ///   - mediaType: The media type that the devices must have. Nil accepts any.
  ///   - position: The required position of a camera. `.unspecified` accepts any.
  /// - Returns: The devices, ordered by type. Devices of one type are in the order of
  ///   ``discover()``.
  public static func discover(
    _ types: [DeviceType], for mediaType: MediaType? = nil, at position: Position = .unspecified
  ) -> [CaptureDevice] {
    let devices = discover()
    var seen: Set<DeviceType> = []
    return types.filter { seen.insert($0).inserted }.flatMap { type in
      devices.filter { device in
        device.deviceType == type
          && (mediaType.map(device.media.contains) ?? true)
          && (position == .unspecified || device.position == position)
      }
    }
  }

  /// The default camera or microphone, or nil if the machine has none.
  ///
  /// Devices that can be opened are preferred to those that cannot, and then external devices to
  /// built-in ones. Among the remaining devices, the first in ``discover()`` is chosen. A virtual
  /// device is chosen only if there is no other. The synthetic camera is never the default.
  public static func defaultDevice(for mediaType: MediaType) -> CaptureDevice? {
    best(among: devices(for: mediaType))
  }

  /// The user's preferred camera or, if none can be opened, the default camera.
  ///
  /// Corresponds to `AVCaptureDevice.systemPreferredCamera`. Nil if the machine has no camera.
  public static var systemPreferredCamera: CaptureDevice? {
    let cameras = discover().filter { $0.media.contains(.video) }
    return PreferredCameras.current.latest(among: cameras.filter { $0.problem == nil })
      ?? best(among: cameras.filter { $0.kind == .v4l2 })
  }

  /// The cameras or microphones of the machine, without the synthetic camera.
  static func devices(for mediaType: MediaType) -> [CaptureDevice] {
    switch mediaType {
    case .audio: MicrophoneList().devices
    case .video: discover().filter { $0.kind == .v4l2 }
    }
  }

  /// The device in a list that is chosen as the default, or nil if the list is empty.
  ///
  /// Devices that can be opened come first, then those that cannot, then virtual devices. Within
  /// each group, external devices come before built-in ones. Among equals, the first in the list is
  /// chosen.
  static func best(among devices: [CaptureDevice]) -> CaptureDevice? {
    func rank(_ device: CaptureDevice) -> (Int, Int) {
      (
        device.deviceType == .virtual ? 2 : device.problem == nil ? 0 : 1,
        device.deviceType == .external ? 0 : 1
      )
    }
    return devices.min { rank($0) < rank($1) }
  }

  /// Whether this user may open cameras or microphones.
  ///
  /// On Linux the permissions of the device nodes decide. No dialog asks the user, so the answer is
  /// always known.
  public enum AuthorizationStatus: Hashable, Sendable {
    /// This user may open at least one device. That device may be in use by another program now.
    case authorized
    /// The machine has devices, and this user may open none of them.
    ///
    /// `group` is the group whose members may open them, or nil if no group has the permission.
    case denied(group: String?)
    /// The machine has no camera (or, for audio, no microphone).
    ///
    /// The synthetic camera does not count, because it has no device node and needs no permission.
    case noDevice
  }

  /// Whether this user may open cameras or microphones.
  ///
  /// The call opens each node briefly.
  public static func authorizationStatus(for mediaType: MediaType) -> AuthorizationStatus {
    let devices = devices(for: mediaType)
    if devices.isEmpty { return .noDevice }
    guard devices.allSatisfy(\.isForbidden) else { return .authorized }
    return .denied(group: devices.lazy.compactMap(\.permittedGroup).first)
  }

  /// Checks whether this user may open cameras or microphones, and returns at once.
  ///
  /// Corresponds to `AVCaptureDevice.requestAccess(for:)`, but shows no dialog.
  ///
  /// - Throws: `MediaError` with `.noPermission` and the name of the group to join, or with
  ///   `.deviceNotFound` if the machine has no such device.
  public static func requestAccess(for mediaType: MediaType) throws(MediaError) {
    let name = mediaType == .video ? "camera" : "microphone"
    switch authorizationStatus(for: mediaType) {
    case .authorized: return
    case .noDevice:
      throw MediaError(
        .deviceNotFound, "this machine has no \(name)",
        recovery: Recovery("plug in a \(name)", .listDevices))
    case .denied(let group):
      let instruction =
        group.map {
          "add yourself to the group \($0) (sudo usermod -aG \($0) $USER) and log in again"
        } ?? "ask the administrator for permission to read and write the device nodes"
      throw MediaError(
        .noPermission, "no permission to open a \(name)",
        recovery: Recovery(instruction, .diagnose(device: nil)))
    }
  }

  /// The group whose members may open the device, or nil if the node grants access to no group.
  var permittedGroup: String? {
    let node: String? =
      switch source {
      case .v4l2(let path): path
      // For a microphone, the permissions of the card's control node are read, because ALSA opens
      // that node first.
      case .alsa(let node): "\(ALSASystem.calls.nodeDirectory)/\(node.controlName)"
      case .synthetic, .file: nil
      }
    return node.flatMap(SystemFiles.permittedGroup)
  }
}
