// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
public import OvercrankRetiming

/// The settings of a player.
public struct PlayerSettings: Sendable {
  /// The output for audio; nil for none.
  ///
  /// Without a sink, or if the sink cannot be opened, ``clock`` drives playback.
  public var audioSink: (any AudioSink)?
  /// The clock whose times ``Player/frame(at:)`` and ``Player/play(atHostTime:rate:)`` take.
  public var clock: any HostClock = MonotonicHostClock()
  /// The expected refresh rate of the screen, for decoding frames in advance.
  public var refreshRate: FrameRate = 60
  /// The memory for decoded frames, in bytes.
  ///
  /// Decoders hold a few additional frames. A budget below four frames counts as four.
  public var frameMemory = 128 << 20
  /// The way in which slow playback fills the time between two captured frames.
  ///
  /// With `flow` and `flowFast`, where playback is so slow that a captured frame would stay for
  /// more than one refresh, the player synthesizes frames at the exact instants of the refreshes.
  /// Playback never waits for a synthesized frame: if it is not ready in time, the refresh shows
  /// the captured frame before it. As in an export, nothing is synthesized across a scene cut, and
  /// repeated frames are ignored. A pause, a seek and a step show captured frames.
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
