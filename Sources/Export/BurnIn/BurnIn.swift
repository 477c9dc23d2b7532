// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Text and a logo that an export draws into its frames.
///
/// Text is in the lower left corner, one line per item, in white on black. The logo is in the upper
/// right corner. The frames are rotated first, as with ``RenderSettings/appliesRotation``, so that
/// the text is upright. Gaps in a composition get no text. A synthesized frame shows the time and
/// frame number that are interpolated between the two captured frames, with a `~` before them.
public struct BurnIn: Hashable, Sendable {
  /// The content of a line of text.
  public enum Item: String, Hashable, Sendable, CaseIterable {
    /// The capture time in seconds after the first captured frame.
    case time
    /// The index of the captured frame in its source, from 0.
    case frame
    /// The speed at this output time, in source seconds per output second; negative for reverse
    /// playback.
    case speed
    /// The capture time in seconds after the frame at the time ``BurnIn/mark``.
    case mark
  }

  /// The lines of text from top to bottom.
  public var items: [Item]
  /// The source time from which ``Item/mark`` counts; nil for the start of the source.
  public var mark: MediaTime?
  /// An image file, such as a PNG with alpha; nil for no logo.
  ///
  /// A logo keeps its size, unless it exceeds a quarter of the frame's width or height. It is then
  /// scaled down to fit.
  public var logoPath: String?

  /// The font of the text; nil for ``BurnInFont/standard``.
  ///
  /// Programs can read text in ``BurnInFont/dots`` back.
  public var font: BurnInFont?

  /// Creates a description of the text and the logo.
  public init(
    items: [Item], mark: MediaTime? = nil, logoPath: String? = nil, font: BurnInFont? = nil
  ) {
    (self.items, self.mark, self.logoPath, self.font) = (items, mark, logoPath, font)
  }
}
