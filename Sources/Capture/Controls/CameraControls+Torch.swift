// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

extension CameraControls {
  /// The requested and the current state of the torch.
  struct Torch: Sendable {
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
    var listener: (monitor: SceneMonitor, number: Int)?
  }

  /// The torch mode, or nil if the camera has no torch.
  ///
  /// Until a mode is set on this object, the value is the LED's current state, `.on` or `.off`.
  public var torchMode: TorchMode? {
    get throws(MediaError) {
      guard let isActive = try isTorchActive else { return nil }
      let (mode, isSet) = state.withLock { ($0.torch.mode, $0.torch.observer != nil) }
      return isSet ? mode : isActive ? .on : .off
    }
  }

  /// Sets the torch mode: `V4L2_CID_FLASH_LED_MODE`.
  ///
  /// The torch is lit only while a session of this program captures from the camera. It goes out
  /// when this object is destroyed. In the mode ``TorchMode/auto`` the torch is lit while frames
  /// are dark. The brightness of H.264 frames is not measured, so they never light the torch.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera has no torch.
  public func setTorchMode(_ mode: TorchMode) throws(MediaError) {
    guard hasTorch else { throw missing("torch") }
    state.withLock { state in
      (state.torch.mode, state.torch.level) = (mode, nil)
    }
    try beginTorch()
  }

  /// Switches the torch on at a brightness: `V4L2_CID_FLASH_TORCH_INTENSITY`.
  ///
  /// It is lit at the times that ``setTorchMode(_:)`` describes.
  ///
  /// - Parameter level: The fraction of the torch's greatest current, above 0 and at most 1. The
  ///   nearest supported current is set.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setTorchModeOn(level: Double) throws(MediaError) {
    guard hasTorch else { throw missing("torch") }
    guard level > 0, level <= 1 else {
      throw outOfRange("the torch level", "\(level)", takes: "numbers above 0, to 1")
    }
    state.withLock { state in
      (state.torch.mode, state.torch.level) = (.on, level)
    }
    try beginTorch()
  }

  /// Starts to observe the stream, and applies the torch mode to the LED.
  private func beginTorch() throws(MediaError) {
    guard let node else { return }
    let isObserving = state.withLock { $0.torch.observer != nil }
    if !isObserving {
      let observer = node.handles.observeCapture(of: node.path) { [weak self] _ in
        // An error of the LED is ignored here, so that it does not end the capture.
        try? self?.followStream()
      }
      state.withLock { $0.torch.observer = observer }
    }
    try followStream()
  }

  /// Applies the torch mode to the LED: the torch may be lit only while the stream is on.
  private func followStream() throws(MediaError) {
    // This method is called from several threads. The lock keeps an older call from overwriting the
    // LED state of a newer call.
    let result = torchWork.withLock { _ in
      Result { () throws(MediaError) in try setTorch() }
    }
    try result.get()
  }

  private func setTorch() throws(MediaError) {
    guard let node else { return }
    let isStreaming = node.handles.isStreaming(node.path)
    let torch = state.withLock { $0.torch }
    let monitor = node.handles.companion(of: node.path) as? SceneMonitor
    listen(to: isStreaming && torch.mode == .auto ? monitor : nil)
    switch torch.mode {
    case .on where isStreaming: try light()
    case .auto where isStreaming && torch.automatic.isLit: try light()
    case .off, .on, .auto: try extinguish(always: torch.mode == .off)
    }
  }

  private func listen(to monitor: SceneMonitor?) {
    let before = state.withLock { $0.torch.listener }
    guard before?.monitor !== monitor else { return }
    state.withLock { $0.torch.listener = nil }
    before?.monitor.remove(before?.number ?? 0)
    guard let monitor else { return }
    let number = monitor.add(
      SceneMonitor.Listener { [weak self] grid, _ in self?.see(grid.meanLevel) })
    if let number { state.withLock { $0.torch.listener = (monitor, number) } }
  }

  /// Switches the torch on or off if the mean luma of a frame, from 0 (black) to 1, requires it.
  ///
  /// Called on the scene monitor's thread.
  private func see(_ meanLevel: Double) {
    let isNews = state.withLock { state in
      let wasLit = state.torch.automatic.isLit
      return state.torch.automatic.see(meanLevel) != wasLit
    }
    if isNews { try? followStream() }
  }

  private func light() throws(MediaError) {
    let level = state.withLock { $0.torch.level }
    if let level, let control = try find(.torchIntensity) {
      let current = (Double(control.maximum) * level).rounded()
      try set(control, control.nearestValue(to: Int64(saturating: current)))
    }
    try set(.flashMode, ControlItem.ledLights)
    state.withLock { $0.torch.isLit = true }
  }

  /// Switches the torch off if this object lit it.
  ///
  /// With `always`, switches the torch off even if something else lit it.
  private func extinguish(always: Bool = false) throws(MediaError) {
    let wasLit = state.withLock { state in
      defer { state.torch.isLit = false }
      return state.torch.isLit
    }
    if wasLit || always { try set(.flashMode, ControlItem.ledOff) }
  }

  /// Switches the torch off when this object is destroyed.
  func endTorch() {
    let torch = state.withLock { $0.torch }
    if let observer = torch.observer, let node {
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
