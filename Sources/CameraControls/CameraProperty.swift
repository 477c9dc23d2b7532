// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2

/// A row of the table of camera properties, which is at the end of this file.
///
/// A new property is one row, and its accessors in ``CameraControls``.
struct CameraProperty<Value: Sendable>: Sendable {
  /// The controls that may hold the property, the preferred one first.
  let controls: [ControlID]
  let unit: ControlUnit<Value>
  /// The property's name in the error for a value out of range.
  let name: String
  /// The adjustment that is switched off before the property is set.
  let automatic: (@Sendable () -> AutomaticAdjustment)?
  /// The name of what a camera lacks that does not support a value.
  ///
  /// Nil for the name of the first control.
  let feature: (@Sendable (Value) -> String)?

  init(
    _ controls: [ControlID], _ unit: ControlUnit<Value>, _ name: String = "",
    off automatic: (@Sendable () -> AutomaticAdjustment)? = nil,
    lacks feature: (@Sendable (Value) -> String)? = nil
  ) {
    (self.controls, self.unit, self.name) = (controls, unit, name)
    (self.automatic, self.feature) = (automatic, feature)
  }
}

/// The conversion between the numbers of a control and the values of a property.
struct ControlUnit<Value: Sendable>: Sendable {
  /// Whether a control with this range or menu holds the property.
  var isUsable: @Sendable (DeviceControl) -> Bool = { _ in true }
  let value: @Sendable (Int64, DeviceControl) -> Value?
  /// The number nearest to a value, or nil for a value that the control does not support.
  let number: @Sendable (Value, DeviceControl, TimeRounding) -> Int64?
  /// A value in errors, or nil for a choice: a camera has or lacks each value.
  var text: (@Sendable (Value) -> String)?
}

extension ControlledCamera {
  /// The control that holds a property, or nil if the camera lacks the property.
  func find<Value>(_ property: CameraProperty<Value>) throws(MediaError) -> DeviceControl? {
    for id in property.controls {
      if let control = try find(id), property.unit.isUsable(control) { return control }
    }
    return nil
  }

  /// Whether the camera has a property.
  ///
  /// False if the device is lost.
  func has<Value>(_ property: CameraProperty<Value>) -> Bool { (try? find(property)) != nil }

  /// Whether the camera has a property and supports a value of it.
  func supports<Value>(_ property: CameraProperty<Value>, _ value: Value) -> Bool {
    (try? setting(property, value)) != nil
  }

  /// The value of a property, or nil if the camera lacks the property.
  func read<Value>(_ property: CameraProperty<Value>) throws(MediaError) -> Value? {
    guard let control = try find(property) else { return nil }
    return try value(control).number.flatMap { property.unit.value($0, control) }
  }

  /// The values of a menu in its order, or the smallest and the greatest value of a range.
  func values<Value>(of property: CameraProperty<Value>) throws(MediaError) -> [Value] {
    guard let control = try find(property) else { return [] }
    return control.bounds.compactMap { property.unit.value($0, control) }
  }

  /// The smallest and the greatest value of a property, or nil if the camera lacks the property.
  func range<Value: Comparable>(
    of property: CameraProperty<Value>
  ) throws(MediaError) -> ClosedRange<Value>? {
    let values = try values(of: property)
    guard let least = values.min(), let greatest = values.max() else { return nil }
    return least...greatest
  }

  /// Sets a property to the nearest supported value and returns that value.
  ///
  /// Nothing is changed if the value is not supported.
  @discardableResult
  func write<Value>(_ property: CameraProperty<Value>, _ value: Value) throws(MediaError) -> Value {
    let (control, number) = try setting(property, value)
    if let automatic = property.automatic { try switchOff(automatic()) }
    return property.unit.value(try set(control, number), control) ?? value
  }

  /// The setting that gives a property the nearest supported value.
  func setting<Value>(
    _ property: CameraProperty<Value>, _ value: Value, rounding: TimeRounding = .halfAwayFromZero
  ) throws(MediaError) -> (control: DeviceControl, number: Int64) {
    let control = try find(property)
    if let control, let number = property.unit.number(value, control, rounding) {
      return (control, number)
    }
    guard control != nil, let text = property.unit.text else {
      throw missing(property.feature?(value) ?? property.controls[0].wellKnownName)
    }
    let values = try values(of: property).map(text)
    throw outOfRange(
      "the \(property.name)", text(value),
      takes: values.joined(separator: values.count == 2 ? " to " : ", "))
  }
}

extension DeviceControl {
  /// The numbers of all menu items, or the smallest and the greatest number of a range.
  ///
  /// Empty if the driver's range is invalid.
  fileprivate var bounds: [Int64] {
    kind.isMenu ? menu.map(\.index) : minimum <= maximum ? [minimum, maximum] : []
  }

  /// The meaning of a number: for an integer menu, the number of its item.
  fileprivate func quantity(at number: Int64) -> Int64? {
    kind == .integerMenu ? menu.first { $0.index == number }?.number : number
  }

  /// The number whose quantity is nearest to a quantity from the smallest to the greatest one.
  fileprivate func number(nearest quantity: Int64) -> Int64? {
    let quantities = bounds.compactMap(self.quantity)
    guard let least = quantities.min(), let greatest = quantities.max(), least <= quantity,
      quantity <= greatest
    else { return nil }
    guard kind == .integerMenu else { return nearestValue(to: quantity) }
    // The difference of two 64-bit numbers may need more than 64 bits.
    func distance(_ item: MenuItem) -> UInt128 {
      (Int128(item.number ?? .max) - Int128(quantity)).magnitude
    }
    return menu.min { distance($0) < distance($1) }?.index
  }
}

// MARK: - Units

extension ControlUnit<Int64> {
  /// The control's own unit, with the suffix of its values in errors.
  fileprivate static func quantity(_ suffix: String = "") -> Self {
    Self(
      value: { $1.quantity(at: $0) },
      number: { value, control, _ in control.number(nearest: value) },
      text: { "\($0)\(suffix)" })
  }

  /// Degrees, of which only the control's own steps are supported.
  fileprivate static var degrees: Self {
    Self(value: { number, _ in number }) { angle, control, _ in
      control.number(nearest: angle) == angle ? angle : nil
    }
  }
}

extension ControlUnit<MediaTime> {
  /// A time in the unit of a control.
  fileprivate static func time(of id: ControlID) -> Self {
    Self(
      value: { number, _ in id.time(of: number) },
      number: { time, control, rounding in
        (try? time.converted(to: id.timescale ?? 1, rounding: rounding).value)
          .flatMap(control.number)
      },
      text: { "\($0.secondsText) s" })
  }
}

extension ControlUnit<Double> {
  /// A linear scale.
  ///
  /// - Parameters:
  ///   - isExact: Whether only the items of a menu are supported.
  ///   - ends: The quantities that mean 0 and 1, or nil if the control is no such scale.
  /// - Returns: The unit.
  fileprivate static func scale(
    isExact: Bool = false,
    _ ends: @escaping @Sendable (DeviceControl) -> (zero: Int64, one: Int64)?
  ) -> Self {
    @Sendable func value(_ number: Int64, _ control: DeviceControl) -> Double? {
      guard let ends = ends(control), let quantity = control.quantity(at: number) else {
        return nil
      }
      return (Double(quantity) - Double(ends.zero)) / (Double(ends.one) - Double(ends.zero))
    }
    return Self(
      isUsable: { ends($0) != nil }, value: value,
      number: { wanted, control, _ in
        let values = control.bounds.compactMap { value($0, control) }
        guard let ends = ends(control), let least = values.min(), let greatest = values.max(),
          least <= wanted, wanted <= greatest, !isExact || values.contains(wanted)
        else { return nil }
        let span = Double(ends.one) - Double(ends.zero)
        let quantity = (Double(ends.zero) + span * wanted).rounded()
        return control.number(nearest: Int64(saturating: quantity))
      },
      text: { Int64(exactly: $0)?.description ?? "\($0)" })
  }
}

extension ControlUnit where Value: Equatable {
  /// The items of a menu that mean each value, in order of preference.
  fileprivate static func items(_ items: [(value: Value, items: [Int64])]) -> Self {
    Self(value: { number, _ in items.first { $0.items.contains(number) }?.value }) {
      value, control, _ in
      items.first { $0.value == value }?.items
        .first { item in control.menu.contains { $0.index == item } }
    }
  }
}

extension ControlUnit<Bool> {
  /// A switch, or a menu with items for on and off, in order of preference.
  ///
  /// If `needsOn` is set, a menu without an item for on does not hold the property.
  static func flag(on: [Int64] = [1], off: [Int64] = [0], needsOn: Bool = false) -> Self {
    let items = ControlUnit.items([(true, on), (false, off)])
    return Self(
      isUsable: { !needsOn || items.number(true, $0, .towardZero) != nil },
      value: { number, control in control.kind.isMenu ? on.contains(number) : number != 0 },
      number: { value, control, rounding in
        control.kind.isMenu ? items.number(value, control, rounding) : value ? 1 : 0
      })
  }
}

// MARK: - The table

extension CameraProperty<MediaTime> {
  static var exposureDuration: Self {
    Self([.exposureTime], .time(of: .exposureTime), "exposure duration", off: { .exposure })
  }
}

extension CameraProperty<Int64> {
  /// The camera's general gain or, if it has none, the sensor's analog gain.
  static var gain: Self { Self([.gain, .analogueGain], .quantity(), "gain", off: { .exposure }) }
  static var exposureBias: Self { Self([.exposureBias], .quantity("/1000 EV"), "exposure bias") }
  static var temperature: Self {
    Self([.whiteBalanceTemperature], .quantity(" K"), "white balance", off: { .whiteBalance })
  }
  static var rotation: Self { Self([.rotation], .degrees, lacks: { "rotation by \($0) degrees" }) }
}

extension CameraProperty<Double> {
  static var iso: Self {
    let unit = ControlUnit.scale(isExact: true) { $0.kind == .integerMenu ? (0, 1000) : nil }
    return Self([.isoSensitivity], unit, "ISO value", off: { .iso })
  }
  static var lensPosition: Self {
    let unit = ControlUnit.scale { $0.minimum < $0.maximum ? ($0.maximum, $0.minimum) : nil }
    return Self([.focus], unit, "lens position", off: { .focus })
  }
  /// Multiples of the minimum, which have no meaning if the minimum is zero or less.
  static var zoomFactor: Self {
    let unit = ControlUnit.scale {
      $0.minimum > 0 && $0.minimum < $0.maximum ? (0, $0.minimum) : nil
    }
    return Self([.zoom], unit, "zoom factor", lacks: { _ in "zoom" })
  }
  static var torchLevel: Self {
    Self([.torchIntensity], .scale { $0.maximum > 0 ? (0, $0.maximum) : nil }, "torch level")
  }
}

extension CameraProperty<Bool> {
  static var mayLowerFrameRate: Self { Self([.exposureMayLowerRate], .flag()) }
  static var hdr: Self { Self([.wideDynamicRange], .flag()) }
  static var stabilization: Self { Self([.imageStabilization], .flag()) }
  static var privacy: Self { Self([.privacy], .flag()) }
  static var isMirrored: Self { Self([.isMirrored], .flag()) }
  static var isFlipped: Self { Self([.isFlipped], .flag()) }
  static var lowLight: Self {
    let (on, off) = ([ControlItem.sceneNight], [ControlItem.sceneNone])
    return Self(
      [.sceneMode], .flag(on: on, off: off, needsOn: true), lacks: { _ in "low-light boost" })
  }
  static var torch: Self {
    let (on, off) = ([ControlItem.ledLights], [ControlItem.ledOff])
    return Self([.flashMode], .flag(on: on, off: off, needsOn: true), lacks: { _ in "torch" })
  }
  static var flash: Self {
    Self(
      [.flashMode], .flag(on: [ControlItem.ledFlashes], off: [ControlItem.ledOff], needsOn: true))
  }
}

extension CameraProperty<PowerLineFrequency> {
  static var powerLine: Self {
    let items = PowerLineFrequency.allCases.map { ($0, [Int64($0.rawValue)]) }
    return Self([.powerLineFrequency], .items(items), lacks: { "power line frequency \($0)" })
  }
}

extension CameraProperty<AutoFocusRangeRestriction> {
  static var focusRange: Self {
    let items: [(AutoFocusRangeRestriction, [Int64])] = [
      (.none, [ControlItem.focusAnywhere, ControlItem.focusNormal]),
      (.near, [ControlItem.focusNear]), (.far, [ControlItem.focusFar]),
    ]
    return Self(
      [.automaticFocusRange], .items(items), lacks: { "restriction of autofocus to \($0.rawValue)" }
    )
  }
}
