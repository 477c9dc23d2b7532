// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// The options of `record` for metadata.
struct MetadataOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Store a tag: title, description, keywords, make, model or another key.",
      valueName: "key=value"),
    transform: tagItem)
  var tag: [MetadataItem] = []

  @Option(
    parsing: .unconditional,
    help: "Store the place of the capture, e.g. +46.9481+007.4474/ (ISO 6709).",
    transform: locationItem)
  var location: MetadataItem?

  @Option(
    help: ArgumentHelp(
      "Read values of frames from this file descriptor: JSON lines with key, value and frame.",
      valueName: "n"))
  var metadataFd: Int32?

  @Option(
    help: ArgumentHelp(
      "Find objects in the frames and store them in the movie; needs slowmo-full.",
      valueName: "codes,faces"))
  var metadata: ObjectTypes?

  @Option(
    help: ArgumentHelp(
      "Find objects with at most this share of one processor. Default: 20%.",
      valueName: "percent"),
    transform: shareOfProcessor)
  var processorShare: Double?

  @OptionGroup var faces: FaceModelOptions

  /// The objects to find in the frames.
  var selection: ObjectSelection {
    ObjectSelection(
      types: metadata?.names ?? [], processorShare: processorShare, faceModel: faces.faceModel)
  }

  /// The metadata items to store in the file.
  var items: [MetadataItem] { tag + [location].compactMap { $0 } }

  func validate() throws {
    try faces.check(metadata, of: "--metadata")
    if processorShare != nil, metadata == nil {
      throw ValidationError("--processor-share needs --metadata")
    }
    guard let metadataFd else { return }
    guard metadataFd >= 0, ![STDOUT_FILENO, STDERR_FILENO].contains(metadataFd) else {
      throw ValidationError("--metadata-fd \(metadataFd) cannot be read")
    }
  }
}

/// Parses a metadata item `KEY=VALUE`.
@Sendable private func tagItem(_ text: String) throws -> MetadataItem {
  guard let sign = text.firstIndex(of: "=") else {
    throw ValidationError("\(text.repaired) is not a tag such as keywords=golf")
  }
  let value = String(text[text.index(after: sign)...]).repaired
  return try MetadataItem(.init(named: String(text[..<sign]).repaired), .text(value))
}

/// Parses a geographic location.
@Sendable private func locationItem(_ text: String) throws -> MetadataItem {
  MetadataItem(try GeographicLocation(parsing: text))
}
