// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// The part of a running capture that measures the brightness of frames.
package protocol BrightnessMonitor: AnyObject, Sendable {
  /// Adds a listener, which is called with the mean luma of frames, from 0 (black) to 1.
  ///
  /// - Returns: A number for ``remove(_:)``, or nil if the capture is over.
  func addListener(_ see: @escaping @Sendable (Double) -> Void) -> Int?

  /// Removes a listener. A call that is in progress continues.
  func remove(_ number: Int)
}

/// The torch of a camera, which is lit only while the camera streams.
final class TorchControl: Sendable {
  /// The requested and the current state of the torch.
  private struct State: Sendable {
    var mode = TorchMode.off
    /// The torch brightness, as a fraction of the LED's greatest electric current.
    ///
    /// Nil leaves the brightness unchanged.
    var level: Double?
    var isLit = false
    var automatic = AutomaticTorch()
    /// The number of the observer of the stream's start and stop, or nil before a torch mode is
    /// set.
    var observer: Int?
    /// The listener for the brightness of frames.
    ///
    /// Nil unless the mode is automatic and the camera streams.
    var listener: (monitor: any BrightnessMonitor, number: Int)?
  }

  private let camera: ControlledCamera
  private let state = Mutex(State())
  /// The lock that lets one thread at a time change the torch.
  ///
  /// To avoid a deadlock, it must not be acquired while the lock of `state` is held.
  private let work = Mutex(())

  init(_ camera: ControlledCamera) { self.camera = camera }

  /// The mode that was set, or nil before the first.
  var mode: TorchMode? {
    state.withLock { $0.observer != nil ? $0.mode : nil }
  }

  /// Sets the mode and the brightness; nil leaves the brightness unchanged.
  ///
  /// Starts to observe the stream, and applies the torch mode to the LED.
  func set(_ mode: TorchMode, level: Double? = nil) throws(MediaError) {
    state.withLock { state in
      (state.mode, state.level) = (mode, level)
    }
    guard let node = camera.ownNode else { return }
    let isObserving = state.withLock { $0.observer != nil }
    if !isObserving {
      let observer = node.handles.observeCapture(of: node.path) { [weak self] _ in
        // An error of the LED is ignored here, so that it does not end the capture.
        try? self?.followStream()
      }
      state.withLock { $0.observer = observer }
    }
    try followStream()
  }

  /// Applies the torch mode to the LED: the torch may be lit only while the stream is on.
  private func followStream() throws(MediaError) {
    // This method is called from several threads. The lock keeps an older call from overwriting the
    // LED state of a newer call.
    try work.withLock { (_) throws(MediaError) in
      try setTorch()
    }
  }

  private func setTorch() throws(MediaError) {
    guard let node = camera.ownNode else { return }
    let isStreaming = node.handles.isStreaming(node.path)
    let torch = state.withLock { $0 }
    let monitor = node.handles.companion(of: node.path) as? any BrightnessMonitor
    listen(to: isStreaming && torch.mode == .auto ? monitor : nil)
    switch torch.mode {
    case .on where isStreaming: try light()
    case .auto where isStreaming && torch.automatic.isLit: try light()
    case .off, .on, .auto: try extinguish(always: torch.mode == .off)
    }
  }

  private func listen(to monitor: (any BrightnessMonitor)?) {
    let before = state.withLock { $0.listener }
    guard before?.monitor !== monitor else { return }
    state.withLock { $0.listener = nil }
    before?.monitor.remove(before?.number ?? 0)
    guard let monitor else { return }
    if let number = monitor.addListener({ [weak self] in self?.see($0) }) {
      state.withLock { $0.listener = (monitor, number) }
    }
  }

  /// Switches the torch on or off if the mean luma of a frame, from 0 (black) to 1, requires it.
  ///
  /// Called on the scene monitor's thread.
  private func see(_ meanLevel: Double) {
    let isNews = state.withLock { state in
      let wasLit = state.automatic.isLit
      return state.automatic.see(meanLevel) != wasLit
    }
    if isNews { try? followStream() }
  }

  private func light() throws(MediaError) {
    let level = state.withLock { $0.level }
    if let level, let range = try camera.range(of: .torchLevel) {
      try camera.write(.torchLevel, max(level, range.lowerBound))
    }
    try camera.write(.torch, true)
    state.withLock { $0.isLit = true }
  }

  /// Switches the torch off if this object lit it.
  ///
  /// With `always`, switches the torch off even if something else lit it.
  private func extinguish(always: Bool = false) throws(MediaError) {
    let wasLit = state.withLock { state in
      defer { state.isLit = false }
      return state.isLit
    }
    if wasLit || always { try camera.write(.torch, false) }
  }

  /// Switches the torch off and stops observing the stream.
  deinit {
    let torch = state.withLock { $0 }
    if let observer = torch.observer, let node = camera.ownNode {
      node.handles.removeObserver(observer, of: node.path)
    }
    if let listener = torch.listener { listener.monitor.remove(listener.number) }
    try? extinguish()
  }
}

/// Decides from the brightness of frames whether to light a torch.
struct AutomaticTorch: Sendable {
  // The two thresholds of mean luma (0 to 1), for dark and for bright frames, are far apart.
  // Otherwise the torch would brighten the image, switch itself off, and so flicker.
  private static let dark = 0.12
  private static let bright = 0.6

  private(set) var isLit = false

  /// Whether to light the torch after a frame with this mean luma, from 0 (black) to 1.
  mutating func see(_ meanLevel: Double) -> Bool {
    if meanLevel < Self.dark { isLit = true }
    if meanLevel > Self.bright { isLit = false }
    return isLit
  }
}
