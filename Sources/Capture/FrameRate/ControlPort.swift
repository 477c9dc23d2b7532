// SPDX-License-Identifier: Apache-2.0

package import OvercrankV4L2

/// Where a camera's controls are read and set while its buffers may be running.
package protocol ControlPort: Sendable {
  /// What values a control takes, or nil where the camera has none such or it cannot be set.
  func range(of control: ControlID) -> ControlRange?

  /// Reads a control.
  func value(of control: ControlID) throws(DeviceError) -> Int64

  /// Sets a control.
  func set(_ control: ControlID, to value: Int64) throws(DeviceError)
}

/// The values that a control takes.
package struct ControlRange: Hashable, Sendable {
  package let minimum: Int64
  package let maximum: Int64
  /// From value to value, at least 1.
  package let step: Int64
  /// The values of a menu, which may have holes; nil for numbers.
  package let items: Set<Int64>?

  package init(minimum: Int64, maximum: Int64, step: Int64 = 1, items: Set<Int64>? = nil) {
    self.minimum = minimum
    self.maximum = maximum
    self.step = max(1, step)
    self.items = items
  }

  /// Whether the control takes a value.
  package func contains(_ value: Int64) -> Bool {
    if let items { return items.contains(value) }
    guard value >= minimum, value <= maximum else { return false }
    let distance = value.subtractingReportingOverflow(minimum)
    return !distance.overflow && distance.partialValue % step == 0
  }

  /// The largest value that the control takes and that is not above a limit.
  package func largest(notAbove limit: Int64) -> Int64? {
    guard items == nil, limit >= minimum else { return nil }
    let top = min(limit, maximum)
    let distance = top.subtractingReportingOverflow(minimum)
    guard !distance.overflow else { return nil }
    return top - distance.partialValue % step
  }
}
