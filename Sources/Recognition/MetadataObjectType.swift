// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A type of metadata object, such as a code or a face.
///
/// Corresponds to `AVMetadataObject.ObjectType`.
public struct MetadataObjectType: RawRepresentable, Hashable, Sendable, Codable {
  /// The name of the type, such as `qr` or `ean13`.
  public let rawValue: String

  /// Makes a type from its name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// UPC-A, of 12 digits.
  public static let upca = MetadataObjectType(rawValue: "upca")
  /// UPC-E, of 8 digits.
  public static let upce = MetadataObjectType(rawValue: "upce")
  /// EAN-8.
  public static let ean8 = MetadataObjectType(rawValue: "ean8")
  /// EAN-13, except codes that are also UPC-A.
  public static let ean13 = MetadataObjectType(rawValue: "ean13")
  /// Code 39.
  public static let code39 = MetadataObjectType(rawValue: "code39")
  /// Code 93.
  public static let code93 = MetadataObjectType(rawValue: "code93")
  /// Code 128.
  public static let code128 = MetadataObjectType(rawValue: "code128")
  /// Interleaved 2 of 5 (ITF), with at least 6 digits.
  public static let interleaved2of5 = MetadataObjectType(rawValue: "itf")
  /// Codabar, with at least 6 characters.
  public static let codabar = MetadataObjectType(rawValue: "codabar")
  /// QR code.
  public static let qr = MetadataObjectType(rawValue: "qr")
  /// Micro QR code.
  public static let microQR = MetadataObjectType(rawValue: "microqr")
  /// Aztec.
  public static let aztec = MetadataObjectType(rawValue: "aztec")
  /// PDF417.
  public static let pdf417 = MetadataObjectType(rawValue: "pdf417")
  /// Data Matrix.
  public static let dataMatrix = MetadataObjectType(rawValue: "datamatrix")
  /// A face that looks at the camera.
  public static let face = MetadataObjectType(rawValue: "face")

  /// All types of codes.
  public static let codes: [Self] = [
    .upca, .upce, .ean8, .ean13, .code39, .code93, .code128, .interleaved2of5, .codabar, .qr,
    .microQR, .aztec, .pdf417, .dataMatrix,
  ]

  /// Whether the code consists of bars in one direction.
  var isLinear: Bool { Self.linear.contains(self) }

  private static let linear: Set<Self> = [
    .upca, .upce, .ean8, .ean13, .code39, .code93, .code128, .interleaved2of5, .codabar,
  ]
}

extension MediaError.Code {
  /// The requested type of metadata object is not available.
  public static let metadataTypeUnavailable = Self(rawValue: "metadata_type_unavailable")
}

extension MediaError {
  /// Throws if the list of types is empty, or if a type is not available.
  static func checkAvailable(
    _ types: [MetadataObjectType], among available: [MetadataObjectType]
  ) throws(MediaError) {
    for type in types where !available.contains(type) {
      throw MediaError(
        .metadataTypeUnavailable,
        type == .face
          ? "a face is not a code" : "\(type.rawValue) is not a type of metadata objects",
        recovery: "choose codes, such as qr or ean13")
    }
    guard types.isEmpty else { return }
    throw MediaError(
      .metadataTypeUnavailable, "no type of metadata objects is named",
      recovery: "choose codes, such as qr or ean13")
  }
}
