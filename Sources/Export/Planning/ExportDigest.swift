// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// The digest of everything that determines the output of an export: the content of the sources,
/// the composition, the settings and the version of the program.
///
/// An export stores it in the output if ``ExportSettings/digest`` is set. A later export can then
/// recognize a finished output:
///
/// ```swift
/// settings.digest = try session.digest(settings, version: "1")
/// if (try? Asset(path: settings.path))?.exportDigest == settings.digest { return }
/// try session.export(settings)
/// ```
public struct ExportDigest: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
  /// The digest as 64 hexadecimal digits.
  public let rawValue: String
  /// The digest as 64 hexadecimal digits.
  public var description: String { rawValue }

  /// The metadata key of the digest.
  package static let key = "com.overcrank.export_digest"

  /// Creates a digest from 64 hexadecimal digits.
  public init(rawValue: String) { self.rawValue = rawValue }
}

extension Asset {
  /// The digest of the export that made this file; nil if the file contains none.
  public var exportDigest: ExportDigest? {
    metadata[ExportDigest.key].map(ExportDigest.init(rawValue:))
  }
}

extension ExportSession {
  /// Returns the digest of an export.
  ///
  /// The digest depends on the content of the sources and not on their paths. For a source above 16
  /// MiB, it depends on the size and on samples of the content, not on every byte. It depends on
  /// the container of the output, but not on its path. It does not depend on the number of
  /// processors, or on whether an existing file is replaced.
  ///
  /// Blocks while the sources are read.
  ///
  /// - Parameters:
  ///   - settings: The settings of the export.
  ///   - version: The version of the program. Another version gives another digest.
  /// - Returns: The digest.
  /// - Throws: `MediaError` with `.unsupportedContainer`, or if a source cannot be read.
  public func digest(
    _ settings: ExportSettings, version: String
  ) throws(MediaError) -> ExportDigest {
    do {
      var contents: [String: String] = [:]
      for path in Set(composition.sources.map(\.path) + [asset.path]) {
        contents[path] = try Self.ofFile(path)
      }
      let plan = try composition.replacingSourcePaths { contents[$0] ?? $0 }
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      var digest = try ContentDigest()
      digest.update([UInt8](try encoder.encode(plan)))
      let parts: [Any] =
        [
          version, contents[asset.path] ?? "", try settings.container(),
          try Self.digestedMode(settings),
          settings.audioTimePitchAlgorithm, settings.otherAudioSpeeds,
          settings.audioCodec?.rawValue ?? "auto", settings.undecodableFrames,
          settings.captureFrameRate?.description ?? "none",
          // All shards of an export, and the joined movie, have the same digest.
          settings.part == .whole ? "whole" : "groups",
          settings.writesTimeMap ? "time map" : "no time map",
        ] + chosenTracks + (settings.fileLengthLimit.map { ["limit \($0)"] } ?? [])
      digest.update(parts.map { "\n\($0)" }.joined())
      return ExportDigest(rawValue: digest.finish())
    } catch { throw MediaError(exporting: error) }
  }

  /// The mode, with the content of the logo in place of its path, and the font that draws the text.
  private static func digestedMode(_ settings: ExportSettings) throws(MediaError) -> ExportMode {
    guard case .constant(let rate, var rendering) = settings.mode, var burnIn = rendering.burnIn
    else { return settings.mode }
    if let logo = burnIn.logoPath { burnIn.logoPath = try ofFile(logo) }
    // The standard font may differ between the machines of a cluster. Without text, no font counts.
    burnIn.font = burnIn.items.isEmpty ? nil : burnIn.font ?? .standard
    rendering.burnIn = burnIn
    return .constant(rate, rendering)
  }

  private static func ofFile(_ path: String) throws(MediaError) -> String {
    try CallStage.digesting.converting { () throws(CallFailure) in
      try ContentDigest.ofFile(path)
    }
  }

  /// Descriptions of the chosen tracks that are not the first of their media type.
  private var chosenTracks: [String] {
    assets.flatMap { asset in
      [(MediaType.video, asset.videoTrack?.format.index), (.audio, asset.audioTrack?.format.index)]
        .compactMap { mediaType, index in
          let first = asset.tracks(of: mediaType).first?.id
          return first == index ? nil : "\(mediaType) \(index.map(String.init) ?? "none")"
        }
    }
  }

  /// Returns true if the output of an export exists and is complete, and false otherwise.
  ///
  /// A movie must contain the digest, and an index that matches the size of the file. A shard is
  /// read completely.
  ///
  /// - Parameter settings: The settings of the export, with a digest.
  /// - Returns: False if the settings have no digest.
  public func isFinished(_ settings: ExportSettings) -> Bool {
    guard let digest = settings.digest else { return false }
    guard case .shard(let shard) = settings.part else {
      return (try? Asset(path: settings.path))?.exportDigest == digest
    }
    let file = ShardFile(shard, besides: settings.path)
    return (try? file.check(digest)) != nil
  }
}
