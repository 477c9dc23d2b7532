// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
import OvercrankV4L2

/// The current values of the camera settings that Exif metadata describes, such as exposure time,
/// gain and white balance.
///
/// The values come from the camera's controls. V4L2 does not report the values that an automatic
/// mode chooses for each frame.
package struct ExposureInForce: Hashable, Sendable {
  /// The controls that define the exposure.
  ///
  /// A camera has only some of them.
  static let controls: [ControlID] = [
    .automaticExposure, .exposureTime, .automaticGain, .gain, .analogueGain, .automaticISO,
    .isoSensitivity, .automaticWhiteBalance, .whiteBalanceTemperature, .exposureBias,
    .exposureMetering, .iris, .flashMode,
  ]

  // The values are those that the driver reports, stored as 32 bits. For integer menus they are the
  // numbers of the items, not their indices. A value is nil if the camera lacks the control.
  private var mode: Int32?
  private var time: Int32?
  private var automaticGain: Int32?
  private var gain: Int32?
  private var analogueGain: Int32?
  private var automaticISO: Int32?
  private var isoSensitivity: Int32?
  private var automaticWhiteBalance: Int32?
  private var temperature: Int32?
  private var bias: Int32?
  private var metering: Int32?
  private var iris: Int32?
  private var flash: Int32?

  package init() {}

  /// Records the value of a control that defines the exposure.
  mutating func note(_ control: ControlID, _ value: Int64?) {
    let value = value.flatMap(Int32.init(exactly:))
    switch control {
    case .automaticExposure: mode = value
    case .exposureTime: time = value
    case .automaticGain: automaticGain = value
    case .gain: gain = value
    case .analogueGain: analogueGain = value
    case .automaticISO: automaticISO = value
    case .isoSensitivity: isoSensitivity = value
    case .automaticWhiteBalance: automaticWhiteBalance = value
    case .whiteBalanceTemperature: temperature = value
    case .exposureBias: bias = value
    case .exposureMetering: metering = value
    case .iris: iris = value
    case .flashMode: flash = value
    default: break
    }
  }

  /// Whether exposure is manual, or nil if the camera does not report it.
  var isByHand: Bool? {
    guard let mode else { return time == nil ? nil : true }
    return ControlID.automaticExposure.isManual(at: Int64(mode))
  }

  /// The manual exposure duration, or nil if exposure is automatic.
  package var duration: MediaTime? {
    guard isByHand == true, let time else { return nil }
    return ControlID.exposureTime.time(of: Int64(time))
  }

  /// The manual gain in the driver's unit, or nil if gain is automatic.
  var gainValue: Int64? {
    guard isByHand == true, automaticGain ?? 0 == 0 else { return nil }
    return (gain ?? analogueGain).map(Int64.init)
  }

  /// The manual ISO value, or nil if ISO is automatic.
  var iso: Double? {
    guard automaticISO ?? 0 == 0 else { return nil }
    return isoSensitivity.map { Double($0) / 1000 }
  }

  /// Whether white balance is manual, or nil if the camera does not report it.
  var isWhiteBalanceByHand: Bool? {
    guard let automaticWhiteBalance else { return temperature == nil ? nil : true }
    return automaticWhiteBalance == 0
  }

  /// The manual color temperature in kelvin, or nil if white balance is automatic.
  var whiteBalanceTemperature: Int64? {
    isWhiteBalanceByHand == true ? temperature.map(Int64.init) : nil
  }

  /// The exposure bias in thousandths of an EV.
  var exposureBias: Int64? { bias.map(Int64.init) }

  /// The metering mode of automatic exposure.
  var meteringMode: MeteringMode? {
    metering.flatMap { number in
      MeteringMode.allCases.indices.contains(Int(number))
        ? MeteringMode.allCases[Int(number)] : nil
    }
  }

  /// The f-number of the aperture, or nil if the driver does not define the unit of its iris
  /// control.
  var fNumber: Rational? {
    guard let iris, iris > 0 else { return nil }
    return Rational(Int128(iris), over: 100)
  }

  /// Whether the camera has an LED and it is off.
  var isFlashOff: Bool { flash.map { Int64($0) == ControlItem.ledOff } ?? false }
}

/// The part of the image that automatic exposure measures.
public enum MeteringMode: String, Hashable, Sendable, CaseIterable {
  // The cases are in the order of the values of `V4L2_CID_EXPOSURE_METERING`.
  /// The whole image.
  case average
  /// The whole image, with more weight on the center.
  case centerWeighted = "center_weighted"
  /// A small part at the center of the image.
  case spot
  /// Several parts of the image.
  case matrix

  /// The value of Exif's `MeteringMode`.
  var exifNumber: Int {
    switch self {
    case .average: 1
    case .centerWeighted: 2
    case .spot: 3
    case .matrix: 5
    }
  }
}
