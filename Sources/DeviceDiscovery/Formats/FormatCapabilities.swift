// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// The ranges of a camera's zoom, exposure and ISO controls, and whether it has image
/// stabilization.
package struct FormatCapabilities: Sendable {
  var lensMaxZoomFactor = 1.0
  var stabilizes = false
  var exposureDurations: ClosedRange<MediaTime>?
  var isoValues: ClosedRange<Double>?
  /// The manual exposure duration when the controls were read, or nil if exposure was automatic.
  var exposureDuration: MediaTime?

  package init() {}

  /// Reads the controls of a device.
  ///
  /// If a control cannot be read, the values that it would define are unknown.
  init(reportedBy device: borrowing VideoDevice) {
    if let zoom = try? device.control(.zoom), zoom.minimum > 0, zoom.minimum < zoom.maximum {
      lensMaxZoomFactor = Double(zoom.maximum) / Double(zoom.minimum)
    }
    stabilizes = (try? device.control(.imageStabilization)) != nil
    if let iso = try? device.control(.isoSensitivity) {
      let values = iso.menu.compactMap(\.number).map { Double($0) / 1000 }.sorted()
      if let least = values.first, let greatest = values.last { isoValues = least...greatest }
    }
    guard let exposure = try? device.control(.exposureTime), exposure.minimum <= exposure.maximum
    else { return }
    if let least = exposure.id.time(of: exposure.minimum),
      let greatest = exposure.id.time(of: exposure.maximum)
    {
      exposureDurations = least...greatest
    }
    let mode = try? device.number(of: .automaticExposure)
    guard mode.map(ControlID.automaticExposure.isManual) ?? true,
      let units = try? device.number(of: .exposureTime)
    else { return }
    exposureDuration = exposure.id.time(of: units)
  }
}

extension CaptureFormat {
  /// The maximum zoom factor by cropping, at which the crop still has 16 pixels in each direction.
  ///
  /// `DeviceInput.setVideoZoomFactor(_:)` takes factors up to this one. It multiplies with the zoom of
  /// the camera itself; see ``lensMaxZoomFactor``.
  public var videoMaxZoomFactor: Double { max(1, Double(min(width, height)) / 16) }
  /// The maximum factor of the camera's own zoom, in its lens or firmware; 1 if it has none.
  ///
  /// `CameraControls.setVideoZoomFactor(_:)` sets this zoom.
  public var lensMaxZoomFactor: Double { capabilities.lensMaxZoomFactor }
  /// Whether the camera has image stabilization.
  public var isVideoStabilizationSupported: Bool { capabilities.stabilizes }
  /// The minimum exposure duration, or nil if the camera has no exposure control.
  public var minExposureDuration: MediaTime? { capabilities.exposureDurations?.lowerBound }
  /// The maximum exposure duration, or nil if the camera has no exposure control.
  ///
  /// Some cameras change this maximum with the frame rate. The value is the maximum at the rate
  /// that was set when the format was listed.
  public var maxExposureDuration: MediaTime? { capabilities.exposureDurations?.upperBound }
  /// The minimum ISO value, or nil if the camera has no ISO control.
  public var minISO: Double? { capabilities.isoValues?.lowerBound }
  /// The maximum ISO value, or nil if the camera has no ISO control.
  public var maxISO: Double? { capabilities.isoValues?.upperBound }

  /// Whether frames at the highest rate are free of flicker under mains light.
  ///
  /// Mains light flickers at twice the mains frequency. Frames are free of flicker if the frame
  /// duration or the exposure duration is a whole number of flicker periods.
  ///
  /// - Parameters:
  ///   - hertz: The mains frequency, above 0: 50 or 60.
  ///   - exposureDuration: The exposure duration of each frame, or nil if it is automatic.
  /// - Returns: Whether every frame receives the same amount of light.
  public func isFlickerFree(
    underMainsOf hertz: Int, exposureDuration: MediaTime? = nil
  ) -> Bool {
    let flickers = Rational(2 * Int64(hertz))
    func isWhole(_ time: MediaTime) -> Bool {
      let count = time.seconds * flickers
      return count.denominator == 1 && count.numerator > 0
    }
    if isWhole(minFrameDuration) { return true }
    guard let exposureDuration, exposureDuration <= minFrameDuration else { return false }
    return isWhole(exposureDuration)
  }

  /// The mains frequencies (50 Hz, 60 Hz) under which frames at the highest rate are free of
  /// flicker.
  ///
  /// If exposure was manual when the format was listed, the check uses the exposure duration at
  /// that time; see ``isFlickerFree(underMainsOf:exposureDuration:)``.
  public var flickerFreeMainsFrequencies: [Int] {
    [50, 60].filter {
      isFlickerFree(underMainsOf: $0, exposureDuration: capabilities.exposureDuration)
    }
  }
}
