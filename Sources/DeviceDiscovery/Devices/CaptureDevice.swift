// SPDX-License-Identifier: Apache-2.0

package import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2

/// A camera, what plays one, or a microphone.
///
/// The counterpart of `AVCaptureDevice`: a value that says which device is meant. It holds
/// nothing open, and the device may be gone by the time it is used.
///
/// ```swift
/// let camera = try CaptureDevice.named("/dev/video0")
/// let format = try camera.fastestFormat()      // 320x180@60/ar24
/// ```
public struct CaptureDevice: Hashable, Sendable, Identifiable {
  /// What stands behind a device.
  public enum Kind: String, Hashable, Sendable {
    /// A Video4Linux node.
    case v4l2
    /// The program's own test picture.
    case synthetic
    /// A movie file played as a camera.
    case file
    /// A capture device of a sound card.
    case alsa
  }

  /// What a capture of the device opens.
  package enum Source: Hashable, Sendable {
    /// The node at this path.
    case v4l2(path: String)
    case synthetic(SyntheticCamera)
    case file(FileCamera)
    case alsa(AudioNode)
  }

  /// What names the device for good: after a restart, and in another socket of the machine if
  /// the device has a serial number.
  public internal(set) var id: String
  /// The device node or file, or what ALSA calls a microphone (`hw:0,0`); nil where there is none.
  public let path: String?
  /// The device's name for people.
  public let name: String
  /// The name of the driver.
  public let driver: String
  /// Where the device sits.
  public let bus: String
  /// What stands behind the device.
  public let kind: Kind
  /// What media the device gives.
  public let media: [MediaType]
  /// Why the device cannot be asked what it is, a line for people; nil for all others.
  public internal(set) var problem: String?
  /// Whether that is for want of permission.
  var isForbidden = false
  /// How the device came to the machine.
  public internal(set) var deviceType: DeviceType
  /// Which way the camera looks, where its driver or the firmware says.
  public internal(set) var position = Position.unspecified
  package let source: Source
  /// What the device's name says about its input; nil leaves all as it is.
  package private(set) var choice: InputChoice?

  init(id: String, node path: String, name: String, driver: String, bus: String) {
    self.id = id
    self.path = path
    self.name = name
    self.driver = driver
    self.bus = bus
    kind = .v4l2
    media = [.video]
    source = .v4l2(path: path)
    let node = path.lastPathComponent
    let offset = DeviceLocation(
      of: "/sys/class/video4linux/\(node)/device", driver: driver, bus: bus)
    (deviceType, position) = (offset.type, offset.position)
  }

  init(_ camera: SyntheticCamera, id: String) {
    self.id = id
    path = nil
    name = "Synthetic camera"
    driver = "synthetic"
    bus = "virtual"
    kind = .synthetic
    media = [.video]
    source = .synthetic(camera)
    deviceType = .virtual
  }

  init(_ camera: FileCamera, id: String) {
    self.id = id
    path = camera.path
    name = camera.path.lastPathComponent
    driver = "file"
    bus = "virtual"
    kind = .file
    media = [.video]
    source = .file(camera)
    deviceType = .virtual
  }

  init(id: String, node: AudioNode, name: String, driver: String, bus: String) {
    self.id = id
    path = node.hardwareName
    self.name = name
    self.driver = driver
    self.bus = bus
    kind = .alsa
    media = [.audio]
    source = .alsa(node)
    let card = "/sys/class/sound/card\(node.card)/device"
    deviceType = DeviceLocation(of: card, driver: driver, bus: bus).type
  }

  /// What errors and documents call the device: its node or file, or its id where it has none.
  public var address: String { path ?? id }

  /// The same device, at the input that was chosen.
  package func choosing(_ choice: InputChoice?) -> CaptureDevice {
    guard let choice, kind == .v4l2 else { return self }
    var device = self
    device.choice = choice
    return device
  }

  /// The name that messages use: the path of a node, or what was written.
  var spokenName: String {
    guard kind == .v4l2 || kind == .alsa, let path else { return id }
    return choice.map { "'\(path)?\($0.text)'" } ?? path
  }
}

extension CaptureDevice {
  /// Lists the modes of the device, in the driver's order.
  ///
  /// Only enumeration is used, so another program may stream meanwhile; input and timings are set
  /// where the device's name chooses them. Of a range of sizes those that matter are listed:
  /// ``FormatList/formats`` tells which.
  ///
  /// - Throws: `MediaError`: `.notFound`, `.noPermission`, `.unplugged`,
  ///   `.notACaptureDevice`, `.noSignal`; for a file `.fileNotFound` or `.badFile`.
  public func formats() throws(MediaError) -> [CaptureFormat] { try formatList().formats }

  /// Lists the modes of the device, its inputs, and what of the driver's answers makes no sense.
  ///
  /// - Parameter size: A size to list, too, where it lies in a range of sizes.
  /// - Returns: The modes, with their ranges of sizes, and the inputs.
  /// - Throws: `MediaError` as ``formats()`` does.
  public func formatList(
    including size: ModeRequest.Size? = nil
  ) throws(MediaError) -> FormatList {
    switch source {
    case .synthetic(let camera): return FormatList(formats: camera.formats)
    case .file(let camera): return FormatList(formats: try camera.formats())
    case .alsa:
      throw MediaError(
        .notACaptureDevice, "\(spokenName) is a microphone, which gives no pictures",
        recovery: Recovery("choose a camera", .listDevices))
    case .v4l2(let path):
      let device = try openNode(at: path)
      do throws(DeviceError) {
        let inputs = try InputConnectors(of: device)
        let incoming = try inputs?.incomingSignal(of: device)
        var list = try FormatList(asking: device, for: size, incoming: incoming)
        list.inputs = inputs
        return list
      } catch {
        throw MediaError(discovering: error)
      }
    }
  }

  /// The fastest mode that can be stored; ``FormatSelection`` tells what counts.
  ///
  /// - Parameter isWanted: Says which modes are considered at all; all, unless it is given.
  /// - Returns: One of ``formats()``.
  /// - Throws: `MediaError` with `.noMatchingFormat` when there is none, and as
  ///   ``formats()`` does.
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

  /// The fastest mode that fits a request, at the rate asked for.
  ///
  /// A range of rates is narrowed to that rate. Where no mode has the rate exactly, one that is
  /// nearer to it than 60 is to 59.94 fits too: drivers simplify their fractions. The synthetic
  /// camera fits every size and rate that it can draw, listed or not, and so does a device whose
  /// sizes come as a range: its driver is asked for the rates at the size wanted.
  ///
  /// - Parameters:
  ///   - request: The size, rate and pixel format wanted, as far as they matter.
  ///   - isWanted: Says which modes are considered at all; all, unless it is given.
  /// - Returns: The mode; its ``CaptureFormat/maxFrameRate`` is the rate to set.
  /// - Throws: `MediaError` with `.noMatchingFormat`, whose recovery names the nearest mode, and
  ///   as ``formats()`` does.
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
        "The pixel format \(format.fourcc) of \(spokenName) cannot be stored"
          + (format.fourcc.separatePlaneCount > 1
            ? ": its \(format.fourcc.separatePlaneCount) planes lie apart, in an order that "
              + "nothing else has" : ""),
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
  /// What to try instead of a request that nothing fits.
  fileprivate func advice(
    among formats: [CaptureFormat], _ sizeRanges: [FrameSizeRange], of device: String
  ) -> Recovery {
    let list = Recovery.Step.listFormats(device: device)
    let sameSize = formats.filter { $0.width == size?.width && $0.height == size?.height }
    if let size, sameSize.isEmpty,
      let range = sizeRanges.first(where: { fourcc.map($0.fourcc.isNamed) ?? true })
    {
      return Recovery(
        "the nearest size is \(range.nearest(to: size)): it has \(range)", list)
    }
    if let rate, let nearest = nearestMode(among: formats) {
      return Recovery("the nearest to \(rate.modeText) is \(nearest.id)", list)
    }
    if let best = FormatSelection.fastest(among: sameSize, evenBeyondSource: true) {
      return Recovery("the fastest of that size is \(best.id)", list)
    }
    guard let best = FormatSelection.fastest(among: formats) else {
      return Recovery("choose one of its formats", list)
    }
    return Recovery("the fastest is \(best.id)", list)
  }
}
