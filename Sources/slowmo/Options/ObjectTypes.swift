// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// A list of types.
struct ObjectTypes: ExpressibleByArgument {
  let names: [String]

  /// The names of types.
  static let allNames = [
    "codes", "upca", "upce", "ean8", "ean13", "code39", "code93", "code128", "itf", "codabar",
    "qr", "microqr", "aztec", "pdf417", "datamatrix", "faces",
  ]

  init?(argument: String) {
    names = argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard names.allSatisfy(Self.allNames.contains) else { return nil }
  }
}
