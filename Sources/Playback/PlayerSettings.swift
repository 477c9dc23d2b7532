// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
public import OvercrankRetiming

/// The settings of a player.
public struct PlayerSettings: Sendable {
  /// The output for audio; nil for none.
  ///
  /// Without a sink, or if it cannot be opened, the player runs by its clock.
  public var audioSink: (any AudioSink)?
  /// The clock of ``Player/frame(at:)`` and ``Player/play(atHostTime:rate:)``.
  public var clock: any HostClock = MonotonicHostClock()
  /// The screen's refresh rate, which decides which frames are decoded in advance.
  public var refreshRate: FrameRate = 60
  /// The memory for decoded frames, in bytes.
  ///
  /// Decoders hold a few more frames of their own. A budget below four frames counts as four.
  public var frameMemory = 128 << 20
  /// The frames that slow playback shows between two captured frames.
  ///
  /// With `flow` and `flowFast`, where playback is so slow that a captured frame would stay for more
  /// than one refresh, the player synthesizes frames at the exact instants of the refreshes. It does so
  /// on a thread of its own, and never waits: a refresh whose frame is not ready in time shows the
  /// captured frame before it. Scene cuts are held, and repeated frames are dropped, as in an export.
  /// A pause, a seek and a step show captured frames.
  ///
  /// All other values show captured frames, as `hold` does.
  public var sampling = FrameSampling.hold
  /// The pitch algorithm at the start.
  public var algorithm = AudioTimePitchAlgorithm.spectral
  /// Whether the player decodes and renders on its own threads.
  ///
  /// If false, the caller does so with `decodePending()` and `renderAudio()`.
  package var hasThreads = true

  /// Creates the default settings: no audio, 60 refreshes per second, 128 MiB for frames,
  /// captured frames only.
  public init() {}
}
