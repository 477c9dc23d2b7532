// SPDX-License-Identifier: Apache-2.0

public import Logging
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

extension CaptureSession {
  /// The logger of the session and of movies recorded from it.
  ///
  /// Silent by default.
  ///
  /// Starts and ends are logged as `info`, interruptions and warnings as `warning`, and errors that
  /// end an operation as `error`. Single frames are not logged, nor are errors that a call throws.
  /// The log handler is called on the thread where the event occurs. No lock is held during the
  /// call.
  public var logger: Logger {
    get { core.journal.withLock { $0 } }
    set { core.journal.withLock { $0 = newValue } }
  }

  func log(_ events: [SessionEvent]) {
    guard !events.isEmpty else { return }
    let logger = logger
    for event in events {
      switch event {
      case .didStartRunning: logger.info("the session runs")
      case .didStopRunning: logger.info("the session stopped")
      case .wasInterrupted(let device, let reason):
        logger.warning(
          "an input was interrupted",
          metadata: ["device": "\(device.address)", "reason": "\(reason.rawValue)"])
      case .interruptionEnded(let device, let reason):
        logger.info(
          "the interruption ended",
          metadata: ["device": "\(device.address)", "reason": "\(reason.rawValue)"])
      case .runtimeError(let error):
        logger.error(
          "an input stopped", metadata: ["code": "\(error.code.rawValue)", "error": "\(error)"])
      }
    }
  }
}
