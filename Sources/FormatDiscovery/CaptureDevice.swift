// SPDX-License-Identifier: Apache-2.0
import MediaTiming
import V4L2

/// What kind of media a device gives.
public enum MediaType: String, Hashable, Sendable {
  /// Pictures.
  case video
  /// Sound.
  case audio
}

/// A camera, or what plays one.
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
  }

  /// What a capture of the device opens.
  package enum Source: Hashable, Sendable {
    /// The node at this path.
    case v4l2(path: String)
    case synthetic(SyntheticCamera)
    case file(FileCamera)
  }

  /// What names the device for good: after a restart, and in another socket of the machine if
  /// the device has a serial number.
  public let id: String
  /// The device node or file, or nil where there is none.
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
  package let source: Source

  init(id: String, node path: String, name: String, driver: String, bus: String) {
    self.id = id
    self.path = path
    self.name = name
    self.driver = driver
    self.bus = bus
    kind = .v4l2
    media = [.video]
    source = .v4l2(path: path)
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
  }

  init(_ camera: FileCamera, id: String) {
    self.id = id
    path = camera.path
    name = camera.path.split(separator: "/").last.map(String.init) ?? camera.path
    driver = "file"
    bus = "virtual"
    kind = .file
    media = [.video]
    source = .file(camera)
  }

  /// The name that messages use: the path of a node, or what was written.
  var spokenName: String { kind == .v4l2 ? path ?? id : id }
}

extension CaptureDevice {
  /// Lists the modes of the device, in the driver's order.
  ///
  /// Only enumeration is used, so another program may stream meanwhile. Of a range of sizes the
  /// smallest and the largest are listed.
  ///
  /// - Throws: `DiscoveryError`: `.notFound`, `.noPermission`, `.unplugged`,
  ///   `.notACaptureDevice`; for a file `.fileNotFound` or `.badFile`.
  public func formats() throws(DiscoveryError) -> [CaptureFormat] { try formatList().formats }

  /// Lists the modes of the device, and what of the driver's answers makes no sense.
  ///
  /// - Throws: `DiscoveryError` as ``formats()`` does.
  public func formatList() throws(DiscoveryError) -> FormatList {
    switch source {
    case .synthetic(let camera): return FormatList(formats: camera.formats, warnings: [])
    case .file(let camera): return FormatList(formats: try camera.formats(), warnings: [])
    case .v4l2(let path):
      do throws(DeviceError) {
        return try FormatList(asking: VideoDevice(opening: path))
      } catch {
        throw DiscoveryError(error)
      }
    }
  }

  /// The fastest mode that can be stored; ``FormatSelection`` tells what counts.
  ///
  /// - Parameter isWanted: Says which modes are considered at all; all, unless it is given.
  /// - Returns: One of ``formats()``.
  /// - Throws: `DiscoveryError` with `.noMatchingFormat` when there is none, and as
  ///   ``formats()`` does.
  public func fastestFormat(
    where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) throws(DiscoveryError) -> CaptureFormat {
    guard let format = FormatSelection.fastest(among: try formats(), where: isWanted) else {
      throw DiscoveryError(
        .noMatchingFormat, "\(spokenName) has no such mode that can be stored",
        hint: "its modes are listed by: slowmo modes \(spokenName)")
    }
    return format
  }

  /// The fastest mode that fits a request, at the rate asked for.
  ///
  /// A range of rates is narrowed to that rate. Where no mode has the rate exactly, one that is
  /// nearer to it than 60 is to 59.94 fits too: drivers simplify their fractions. The synthetic
  /// camera fits every size and rate that it can draw, listed or not.
  ///
  /// - Parameters:
  ///   - request: The size, rate and pixel format wanted, as far as they matter.
  ///   - isWanted: Says which modes are considered at all; all, unless it is given.
  /// - Returns: The mode; its ``CaptureFormat/maxFrameRate`` is the rate to set.
  /// - Throws: `DiscoveryError` with `.noMatchingFormat`, whose hint names the nearest mode, and
  ///   as ``formats()`` does.
  public func format(
    matching request: ModeRequest, where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) throws(DiscoveryError) -> CaptureFormat {
    let offered: [CaptureFormat]
    if case .synthetic(let camera) = source {
      offered = try camera.formats(for: request)
    } else {
      offered = try formats()
    }
    let wanted = offered.filter(isWanted)
    if let format = request.choose(from: wanted) { return format }
    if let format = offered.first(where: request.matches), !format.isStorable {
      throw DiscoveryError(
        .noMatchingFormat,
        "The pixel format \(format.fourcc) of \(spokenName) cannot be stored",
        hint: "its other modes are listed by: slowmo modes \(spokenName)")
    }
    let isUnwanted = request.choose(from: offered) != nil
    throw DiscoveryError(
      .noMatchingFormat,
      "\(spokenName) has no " + (request == .any ? "mode" : "mode \(request)")
        + (isUnwanted ? " that fits the other options" : ""),
      hint: request.advice(among: wanted, of: spokenName))
  }
}

extension ModeRequest {
  /// What to try instead of a request that nothing fits.
  fileprivate func advice(among formats: [CaptureFormat], of device: String) -> String {
    let list = "all are listed by: slowmo modes \(device)"
    let sameSize = formats.filter { $0.width == size?.width && $0.height == size?.height }
    if let best = FormatSelection.fastest(among: sameSize) {
      return "the fastest of that size is \(best.id); \(list)"
    }
    guard let best = FormatSelection.fastest(among: formats) else { return list }
    return "the fastest is \(best.id); \(list)"
  }
}
