// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
package import OvercrankV4L2

/// Access to the controls of a camera, also while the camera streams.
package protocol ControlPort: Sendable {
  /// The range of a control, or nil if the camera lacks the control or does not let it be set.
  func range(of control: ControlID) -> ControlRange?

  /// Reads a control.
  func value(of control: ControlID) throws(CallFailure) -> Int64

  /// Sets a control.
  func set(_ control: ControlID, to value: Int64) throws(CallFailure)
}

/// The values that a control supports.
package struct ControlRange: Hashable, Sendable {
  package let minimum: Int64
  package let maximum: Int64
  /// The distance between neighboring values, at least 1.
  package let step: Int64
  /// The items of a menu control, whose values may have gaps.
  ///
  /// Nil for numbers.
  package let items: Set<Int64>?

  package init(minimum: Int64, maximum: Int64, step: Int64 = 1, items: Set<Int64>? = nil) {
    (self.minimum, self.maximum) = (minimum, maximum)
    self.step = max(1, step)
    self.items = items
  }

  /// Whether the control supports a value.
  package func contains(_ value: Int64) -> Bool {
    if let items { return items.contains(value) }
    guard value >= minimum, value <= maximum else { return false }
    let distance = value.subtractingReportingOverflow(minimum)
    return !distance.overflow && distance.partialValue % step == 0
  }

  /// The greatest supported value at or below a limit.
  package func largest(notAbove limit: Int64) -> Int64? {
    guard items == nil, limit >= minimum else { return nil }
    let top = min(limit, maximum)
    let distance = top.subtractingReportingOverflow(minimum)
    guard !distance.overflow else { return nil }
    return top - distance.partialValue % step
  }
}
