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

/// The option of a detector of faces.
struct FaceModelOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Find faces with this detector, trained with dlib.", valueName: "file"),
    completion: .file())
  var faceModel: String?

  /// Checks that faces are searched if a detector is named.
  ///
  /// - Parameters:
  ///   - types: The types that are searched.
  ///   - option: The option of the types.
  /// - Throws: `ValidationError` if it is named in vain.
  func check(_ types: ObjectTypes?, of option: String) throws {
    guard faceModel != nil, types?.names.contains("faces") != true else { return }
    throw ValidationError("--face-model needs \(option) faces")
  }
}
