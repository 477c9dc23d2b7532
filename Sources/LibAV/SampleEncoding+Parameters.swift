// SPDX-License-Identifier: Apache-2.0

package import OvercrankMovieFormat

extension SampleEncoding {
  /// Chooses the sample encoding that MOV requires for a track.
  package init(_ parameters: CodecParameters) {
    switch parameters.codecName {
    case "h264" where !parameters.isLengthPrefixed: self = .lengthPrefixed
    case "rawvideo" where parameters.pixelFormat == .rgb24 && parameters.width % 2 != 0:
      self = .evenRows(of: parameters.width * 3)
    default: self = .asItIs
    }
  }
}
