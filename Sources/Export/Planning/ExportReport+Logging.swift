// SPDX-License-Identifier: Apache-2.0

import Logging
import OvercrankMediaCore

extension ExportReport {
  /// Logs the finished export, lost metadata and undecodable frames.
  func log(to logger: Logger) {
    let file: Logger.Metadata = ["path": "\(path)"]
    if !lostMetadata.isEmpty {
      logger.warning("not kept: \(lostMetadata.joined(separator: ", "))", metadata: file)
    }
    for warning in warnings { logger.warning("\(warning)", metadata: file) }
    for frame in undecodable {
      logger.warning(
        "a frame could not be decoded",
        metadata: ["path": "\(frame.path)", "frame": "\(frame.index)"])
    }
    logger.info(
      "the export ended",
      metadata: [
        "path": "\(path)", "copied": "\(framesCopied)", "encoded": "\(framesEncoded)",
        "duration": "\(duration)",
      ])
  }
}
