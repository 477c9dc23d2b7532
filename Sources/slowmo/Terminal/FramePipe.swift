// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem
import Synchronization
import SystemPackage

/// Standard output as a pipe that refers to the memory of raw frames instead of copying them.
struct FramePipe: ~Copyable {
  /// Memory that must stay unchanged while the pipe refers to it.
  private enum Memory: Sendable {
    case frame(RawFrameSequence.Element)
    case bytes([UInt8])
  }

  private var pipe: SplicedPipe<Memory>

  /// The memory to which the pipe may still refer after the last frame.
  ///
  /// It is kept until the program ends.
  private static let rest = Mutex<[Memory]>([])

  /// Creates the pipe; nil if standard output is not a pipe.
  init?() {
    guard let pipe = SplicedPipe<Memory>(.standardOutput) else { return nil }
    self.pipe = pipe
  }

  deinit {
    let owners = pipe.owners
    Self.rest.withLock { $0 += owners }
  }

  /// Writes a frame.
  ///
  /// - Throws: `CommandError` if the write fails, `Output.ReaderIsGone` if the reader closed the pipe.
  mutating func write(_ frame: RawFrameSequence.Element) throws {
    var failure: Errno?
    if frame.keepsParts {
      // The frame is kept in any case: even after an error, the pipe may refer to a part of it.
      defer { pipe.keep(.frame(frame)) }
      try frame.withParts { part in
        if failure == nil { failure = ReaderWait.run { pipe.write(part, givesUp: $0) } }
      }
    } else {
      // The parts of the frame exist only during the call, so their bytes are copied. An error
      // while copying is thrown unchanged.
      var bytes: [UInt8] = []
      try frame.withParts { bytes += $0 }
      failure = bytes.withUnsafeBytes { bytes in
        ReaderWait.run { pipe.write(bytes, givesUp: $0) }
      }
      pipe.keep(.bytes(bytes))
    }
    try Output.check(failure)
  }
}
