// SPDX-License-Identifier: Apache-2.0

/// A stage of the pipeline: the public error codes that it gives to the failed calls below it.
package struct CallStage: Sendable {
  /// The public code of a kind of failure, and the remedy.
  package struct Row: Sendable {
    let code: MediaError.Code
    let recovery: Recovery?

    package init(_ code: MediaError.Code, _ recovery: Recovery? = nil) {
      (self.code, self.recovery) = (code, recovery)
    }
  }

  private let rows: [CallFailure.Kind: Row]
  private let other: Row

  /// The rows of all stages.
  ///
  /// These failures have the same cause whatever the call was made for.
  private static let common: [CallFailure.Kind: Row] = [
    .outOfMemory: Row(.outOfMemory, "close other programs and try again"),
    .diskFull: Row(.diskFull, "free some space and try again"),
    .cancelled: Row(.cancelled),
  ]

  /// Creates a stage.
  ///
  /// - Parameters:
  ///   - rows: The kinds of failure that have a code of their own.
  ///   - other: The code of all other kinds.
  package init(_ rows: [CallFailure.Kind: Row] = [:], other: Row) {
    (self.rows, self.other) = (rows, other)
  }

  /// The creation of threads and the reservation of memory.
  package static let resources = CallStage(
    other: Row(.outOfMemory, "close other programs and try again"))

  /// Runs a closure and converts its failures.
  package func converting<Result: ~Copyable>(
    _ work: () throws(CallFailure) -> Result
  ) throws(MediaError) -> Result {
    do throws(CallFailure) { return try work() } catch { throw MediaError(error, at: self) }
  }

  fileprivate func row(_ kind: CallFailure.Kind) -> Row {
    rows[kind] ?? Self.common[kind] ?? other
  }
}

extension MediaError {
  /// Converts a failed call.
  ///
  /// - Parameters:
  ///   - failure: The failed call. Its own remedy is preferred to that of the stage.
  ///   - stage: The stage that made the call.
  ///   - message: The message; nil for the description of the failure.
  package init(_ failure: CallFailure, at stage: CallStage, message: String? = nil) {
    let row = stage.row(failure.kind)
    self.init(
      row.code, message ?? failure.description, recovery: failure.recovery ?? row.recovery,
      cause: failure.cause)
  }
}
