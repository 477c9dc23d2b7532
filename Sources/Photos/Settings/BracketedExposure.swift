// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The exposure of one photo of a bracket.
public enum BracketedExposure: Hashable, Sendable {
  /// Automatic exposure with a compensation in thousandths of an EV.
  ///
  /// Corresponds to `AVCaptureAutoExposureBracketedStillImageSettings`.
  case automatic(bias: Int64)
  /// Manual exposure, with the gain in the driver's unit.
  ///
  /// A nil duration or gain keeps the current value.
  ///
  /// Corresponds to `AVCaptureManualExposureBracketedStillImageSettings`.
  case manual(duration: MediaTime?, gain: Int64?)
}
