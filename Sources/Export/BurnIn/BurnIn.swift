// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Text and a logo that an export draws into its frames.
///
/// Text is in the lower left corner, one line per item, in white on black. The logo is in the upper
/// right corner. Frames are rotated as ``RenderSettings/appliesRotation`` does, so that the text is
/// upright. Gaps of a composition get no text. Times and frame numbers of a synthesized frame are
/// those of its instant between two captured frames, and begin with `~`.
public struct BurnIn: Hashable, Sendable {
  /// A line of text.
  public enum Item: String, Hashable, Sendable, CaseIterable {
    /// The capture time of the frame since that of the first frame, in seconds.
    case time
    /// The index of the frame in its source, from 0.
    case frame
    /// The speed at the output time: source seconds per output second, below zero backwards.
    case speed
    /// The capture time since the frame that is shown at ``BurnIn/mark``, in seconds.
    case mark
  }

  /// The lines from top to bottom.
  public var items: [Item]
  /// The source time of the mark; nil for the start.
  public var mark: MediaTime?
  /// An image file, such as a PNG with alpha; nil for no logo.
  ///
  /// It keeps its size up to a quarter of the frame's width and height, and is scaled down beyond.
  public var logoPath: String?

  /// The font of the text; nil for the library's own of 5x7 dots, which programs can read back.
  ///
  /// Frames that are narrower than 272 pixels always have the library's own.
  public var font: BurnInFont?

  /// Creates what is drawn.
  public init(
    items: [Item], mark: MediaTime? = nil, logoPath: String? = nil, font: BurnInFont? = nil
  ) {
    self.items = items
    self.mark = mark
    self.logoPath = logoPath
    self.font = font
  }
}
