// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import OvercrankLinuxSystem

/// A list of object types, separated by commas.
struct ObjectTypes: ExpressibleByArgument {
  let names: [String]

  /// The names of all object types.
  static let allNames = [
    "codes", "upca", "upce", "ean8", "ean13", "code39", "code93", "code128", "itf", "codabar",
    "qr", "microqr", "aztec", "pdf417", "datamatrix", "faces",
  ]

  init?(argument: String) {
    names = argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard names.allSatisfy(Self.allNames.contains) else { return nil }
  }
}

/// Parses the share of a processor, such as `25%`: above 0, and at most 100 %.
@Sendable func shareOfProcessor(_ text: String) throws -> Double {
  guard let share = Double(percentage: text) else {
    throw ValidationError("\(text.repaired) is not a share of a processor such as 25%")
  }
  return share
}

extension Double {
  /// Parses a percentage such as `25%` as a fraction: above 0, and at most 1.
  init?(percentage text: String) {
    guard text.hasSuffix("%"), let percent = Double(text.dropLast()), percent > 0, percent <= 100
    else { return nil }
    self = percent / 100
  }
}

/// The option that selects a face detector.
struct FaceModelOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Find faces with this detector, trained with dlib.", valueName: "file"),
    completion: .file())
  var faceModel: String?

  /// Throws if a face detector is given but faces are not searched for.
  ///
  /// - Parameters:
  ///   - types: The types to find.
  ///   - option: The option that selects the types, for the message.
  /// - Throws: `ValidationError` if the detector would not be used.
  func check(_ types: ObjectTypes?, of option: String) throws {
    guard faceModel != nil, types?.names.contains("faces") != true else { return }
    throw ValidationError("--face-model needs \(option) faces")
  }
}
