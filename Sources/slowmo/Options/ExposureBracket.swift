// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import Overcrank

/// The exposure compensations of `--bracket`: `-2,0,2`.
struct ExposureBracket {
  let exposures: [BracketedExposure]

  /// The greatest exposure compensation in EV.
  private static let limit = 20.0

  init(parsing text: String) throws {
    exposures = try text.split(separator: ",", omittingEmptySubsequences: false).map { part in
      guard let bias = Double(part), bias.isFinite, abs(bias) <= Self.limit else {
        throw ValidationError("\(text) is not a list of EV, such as -2,0,2")
      }
      return .automatic(bias: Int64((bias * 1_000).rounded()))
    }
  }
}

extension FlashMode: ExpressibleByArgument {}
