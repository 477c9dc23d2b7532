// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
public import OvercrankMediaCore

extension MediaError.Code {
  /// Two recordings have no event in common that can be found.
  public static let nothingInCommon = Self(rawValue: "nothing_in_common")
  /// A search found several results that fit about equally well.
  public static let ambiguousMatch = Self(rawValue: "ambiguous_match")
}

extension MediaError {
  static func readingCancelled(_ asset: Asset) -> MediaError { .readingCancelled(asset.path) }
}
