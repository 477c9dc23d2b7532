// SPDX-License-Identifier: Apache-2.0

public import Logging
import OvercrankMediaCore
import Synchronization

extension CaptureSession {
  /// Where the session, and every movie that records from it, says what happens; quiet until it is
  /// set.
  ///
  /// Starts and ends are told as `info`, interruptions and warnings as `warning`, errors that end
  /// something as `error`. A frame is never told of, and neither is an error that is thrown. The
  /// handler is called on the thread on which it happened, while nothing is locked.
  public var logger: Logger {
    get { journal.withLock { $0 } }
    set { journal.withLock { $0 = newValue } }
  }

  func log(_ events: [SessionEvent]) {
    guard !events.isEmpty else { return }
    let logger = logger
    for event in events {
      switch event {
      case .didStartRunning: logger.info("the session runs")
      case .didStopRunning: logger.info("the session stopped")
      case .wasInterrupted(let reason):
        logger.warning("the session was interrupted", metadata: ["reason": "\(reason.rawValue)"])
      case .interruptionEnded(let reason):
        logger.info("the interruption ended", metadata: ["reason": "\(reason.rawValue)"])
      case .runtimeError(let error):
        logger.error(
          "an input stopped", metadata: ["code": "\(error.code.rawValue)", "error": "\(error)"])
      }
    }
  }
}
