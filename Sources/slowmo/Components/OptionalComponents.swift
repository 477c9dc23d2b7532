// SPDX-License-Identifier: Apache-2.0

package import Overcrank
import Synchronization

/// The parts of the command that need optional libraries.
///
/// A program that links them passes them to ``SlowmoProgram/main(with:)``.
package struct OptionalComponents: Sendable {
  /// Opens the windows of `play`; nil in a program without.
  package var playbackWindows: (any PlaybackWindowProvider)?

  /// The encoders of photos in formats such as HEIC; empty in a program without.
  package var photoEncoders: [any PhotoEncoder] = []

  /// Opens the windows of `preview`; nil in a program without.
  package var previewWindows: (any PreviewWindowProvider)?

  /// Finds codes in frames; nil in a program without.
  package var recognition: (any ObjectRecognition)?

  /// Draws the characters of a named font; nil in a program without.
  package var burnInFont: (@Sendable (String) throws(MediaError) -> BurnInFont)?

  /// Creates a set without any component.
  package init() {}

  private static let registered = Mutex(OptionalComponents())

  /// The components of this program.
  static var current: OptionalComponents { registered.withLock { $0 } }

  /// Sets the components of this program, before its arguments are read.
  func register() { Self.registered.withLock { $0 = self } }
}
