// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
public import OvercrankMediaCore

extension CaptureDevice {
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
}
