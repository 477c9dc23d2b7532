// SPDX-License-Identifier: Apache-2.0

package import CVideo4Linux
import Glibc
package import OvercrankV4L2
import Synchronization

/// A simulated driver that has only controls and follows a script.
package final class ScriptedControls: VideoSystemCalls {
  package let handles = SharedHandles()

  /// The driver's values, and a log of requests.
  package struct State: Sendable {
    package var controls: [DeviceControl]
    package var values: [ControlID: ControlValue] = [:]
    /// All values written to controls, in order.
    package var writes: [Write] = []
    /// The errors to return for writing, reading and describing controls.
    package var writeErrors: [ControlID: Int32] = [:]
    package var readErrors: [ControlID: Int32] = [:]
    package var queryErrors: [ControlID: Int32] = [:]
    /// Whether the extended control requests (since 2014) are supported.
    package var isModern = true
    /// Whether V4L2_CTRL_FLAG_NEXT_CTRL is supported.
    package var knowsNext = true
    package var priority: UInt32 = 2
    package var priorityError: Int32?
    package var events: [v4l2_event] = []
    package var subscriptions: Set<ControlID> = []
    package var isUnplugged = false
    package var openCount = 0
    /// Applies side effects when a control is written.
    package var onWrite: (@Sendable (Write, inout State) -> Void)?

    package init(_ controls: [DeviceControl]) {
      self.controls = controls
      for control in controls where control.holdsNumber {
        values[control.id] = .number(control.defaultValue)
      }
    }

    /// Sets the flags of a control, as a driver does when an automatic mode takes control.
    package mutating func setFlags(_ flags: DeviceControl.Flags, of id: ControlID) {
      guard let position = controls.firstIndex(where: { $0.id == id }) else { return }
      let old = controls[position]
      controls[position] = DeviceControl(
        id: id, name: old.name, kind: old.kind, minimum: old.minimum, maximum: old.maximum,
        step: old.step, defaultValue: old.defaultValue, flags: flags, menu: old.menu,
        elementSize: old.elementSize, elementCount: old.elementCount, dimensions: old.dimensions)
    }
  }

  /// A control and the value that it was set to.
  package struct Write: Hashable, Sendable {
    package let id: ControlID
    package let value: ControlValue

    package init(_ id: ControlID, _ value: ControlValue) {
      self.id = id
      self.value = value
    }
  }

  private let state: Mutex<State>

  /// The subdevices of flash LEDs, by the paths of their nodes.
  private let parts: KeyValuePairs<String, ScriptedControls>

  package init(
    _ controls: [DeviceControl], parts: KeyValuePairs<String, ScriptedControls> = [:]
  ) {
    state = Mutex(State(controls))
    self.parts = parts
  }

  /// Changes the driver's state, as a camera or another program would.
  package func change<Result>(_ body: (inout State) -> Result) -> Result {
    state.withLock { body(&$0) }
  }

  /// All values written to controls so far.
  package var writes: [Write] { state.withLock { $0.writes } }

  /// The numbers written to controls so far, in the form `name=number`.
  package var numbersWritten: [String] {
    writes.map { "\($0.id.wellKnownName)=\($0.value.number.map(String.init) ?? "?")" }
  }

  package func open(_ path: String) -> CInt {
    state.withLock { state in
      state.openCount += 1
      return 3
    }
  }

  package func leds(of node: String) -> [String] { parts.map(\.key) }

  package func openSubdevice(_ path: String) -> CInt {
    guard let position = parts.firstIndex(where: { $0.key == path }) else { return -ENOENT }
    _ = parts[position].value.open(path)
    return Self.firstPart + CInt(position)
  }

  private static let firstPart: CInt = 100

  /// The subdevice to which a descriptor belongs; nil for the camera itself.
  private func part(_ descriptor: CInt) -> ScriptedControls? {
    descriptor < Self.firstPart ? nil : parts[Int(descriptor - Self.firstPart)].value
  }

  package func close(_ descriptor: CInt) -> CInt {
    if let part = part(descriptor) { return part.close(0) }
    state.withLock { $0.openCount -= 1 }
    return 0
  }

  package func control(
    _ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    if let part = part(descriptor) { return part.control(0, request, argument) }
    return state.withLock { $0.answer(request, argument) }
  }

  package func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt {
    // The sleep keeps a waiting thread from occupying a whole core.
    if milliseconds > 0 { usleep(200) }
    return state.withLock { state in
      if state.isUnplugged { return CInt(POLLERR | POLLHUP) }
      return state.events.isEmpty ? 0 : CInt(POLLPRI)
    }
  }

  package func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer? {
    error = -ENOMEM
    return nil
  }

  package func unmap(_ memory: UnsafeMutableRawBufferPointer) {}

  package func nanoseconds() -> Int64 { 0 }

  package func nodes() -> [String] { ["/dev/video0"] }

  /// Queues an event that says that a control has changed.
  package func send(change id: ControlID, to number: Int32) {
    var event = v4l2_event()
    event.type = UInt32(V4L2_EVENT_CTRL)
    event.id = id.rawValue
    event.u.ctrl.changes = UInt32(V4L2_EVENT_CTRL_CH_VALUE)
    event.u.ctrl.type = V4L2_CTRL_TYPE_INTEGER.rawValue
    event.u.ctrl.value = number
    state.withLock { $0.events.append(event) }
  }
}
