// SPDX-License-Identifier: Apache-2.0

package import Overcrank
import Synchronization

/// The parts of the command that need optional libraries.
///
/// A program that links these libraries passes the components to ``SlowmoProgram/main(with:)``.
package struct OptionalComponents: Sendable {
  /// Opens the windows of `play`; nil in a program without windows.
  package var playbackWindows: (any PlaybackWindowProvider)?

  /// The encoders of photos in formats such as HEIC; empty in a program without such encoders.
  package var photoEncoders: [any PhotoEncoder] = []

  /// Opens the windows of `preview`; nil in a program without windows.
  package var previewWindows: (any PreviewWindowProvider)?

  /// Finds codes and faces in frames; nil in a program without object recognition.
  package var recognition: (any ObjectRecognition)?

  /// Creates a set without any component.
  package init() {}

  private static let registered = Mutex(OptionalComponents())

  /// The components of this program.
  static var current: OptionalComponents { registered.withLock { $0 } }

  /// Sets the components of this program.
  ///
  /// Call it before the arguments are parsed.
  func register() { Self.registered.withLock { $0 = self } }
}
