// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `preview`.
struct PreviewDocument: Encodable, TextDocument {
  /// A key, a tap, or a file that was written, during the preview.
  struct Event: Encodable {
    /// The time of the event after the start of the preview, in nanoseconds.
    let atNs: Int64
    /// The kind of event: `key`, `tap`, `photo`, `screenshot` or `failed`.
    let type: String
    let detail: String
  }

  /// The number of frames that arrived, by outcome.
  struct Ledger: Encodable {
    let offered: Int64
    let delivered: Int64
    let waiting: Int64
    let frameWasLate: Int64
    let outOfBuffers: Int64
    let corrupt: Int64

    init(_ ledger: DataOutputLedger) {
      (offered, delivered, waiting) = (ledger.offered, ledger.delivered, ledger.waiting)
      frameWasLate = ledger.dropped[.frameWasLate] ?? 0
      outOfBuffers = ledger.dropped[.outOfBuffers] ?? 0
      corrupt = ledger.dropped[.corrupt] ?? 0
    }
  }

  let schema = schemaName("preview")
  let device: String
  let mode: String
  let shown: Int64
  let delay: MediaTime
  let speed: Speed
  /// The measured rate of the frames that arrived; nil for fewer than two frames.
  let measuredFps: Rational?
  /// The number of frames that are missing according to the driver's counter.
  let lost: Int64
  let ledger: Ledger
  let events: [Event]
  /// The error that ended the preview after a file was written; nil for none.
  let error: ErrorDetails?

  /// Whether a photo or a screenshot was written.
  var hasFiles: Bool { !files.isEmpty }

  private var files: [Event] { events.filter { ["photo", "screenshot"].contains($0.type) } }

  /// The result as text lines.
  var lines: [String] {
    let rate = measuredFps.map { ", \(decimal($0.doubleValue, 1)) fps" } ?? ""
    let delayed = delay > .zero ? ", delayed by \(decimal(delay.doubleValue, 3)) s" : ""
    return [
      "\(device): \(shown) of \(ledger.offered) frames shown\(delayed)\(rate), \(lost) lost"
    ] + files.map { "written: \($0.detail)" }
      + events.filter { $0.type == "failed" }.map(\.detail)
  }
}
