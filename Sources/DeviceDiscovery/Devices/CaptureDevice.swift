// SPDX-License-Identifier: Apache-2.0

package import OvercrankALSA
import OvercrankLinuxSystem
public import OvercrankMediaCore
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
  /// The input options in the device's name, or nil to keep the current settings.
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
}

extension CaptureDevice {
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
    including size: ModeRequest.Size? = nil
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
      do throws(DeviceError) {
        let inputs = try InputConnectors(of: device)
        let incoming = try inputs?.incomingSignal(of: device)
        var list = try FormatList(
          asking: device, for: size, incoming: incoming,
          capabilities: FormatCapabilities(reportedBy: device))
        list.inputs = inputs
        return list
      } catch {
        throw MediaError(discovering: error)
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
