// SPDX-License-Identifier: Apache-2.0

import Logging
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore

extension RecordingReport {
  /// Logs the end of the take, its warnings and its error.
  func log(to logger: Logger) {
    let file: Logger.Metadata = ["path": "\(path)"]
    for warning in warnings { logger.warning("\(warning)", metadata: file) }
    if let problem {
      logger.error("\(problem)", metadata: ["path": "\(path)", "code": "\(problem.code.rawValue)"])
    }
    logger.info(
      "the recording ended",
      metadata: [
        "path": "\(path)", "stored": "\(ledger.stored)", "dropped": "\(ledger.dropped)",
        "stoppedBy": "\(stoppedBy.rawValue)", "isPlayable": "\(isPlayable)",
      ])
  }
}
