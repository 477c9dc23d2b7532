// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat
public import OvercrankRetiming

/// How a composition becomes a movie.
public enum ExportMode: Hashable, Sendable {
  /// The packets of the picture are copied and get new times; the true variable rate is kept.
  ///
  /// `boundary` says what happens at cuts that are not on a key frame; what is encoded there has the
  /// constant rate factor `crf`, from 0 (lossless) to 51.
  case passthrough(boundary: CutPolicy = .auto, crf: Int = 18)
  /// The picture is rendered at a constant rate.
  case constant(FrameRate, RenderSettings = RenderSettings())

  /// Whether packets are copied.
  public var isPassthrough: Bool {
    if case .passthrough = self { true } else { false }
  }
}

/// What a passthrough export does where the source jumps to a picture that needs others.
public enum CutPolicy: String, Hashable, Sendable, CaseIterable {
  /// `squeeze` where few pictures are needed, else `render`.
  case auto
  /// The pictures that it needs are copied along, each of them for one tick.
  case squeeze
  /// The pictures from the cut up to the next one that needs no other are encoded (H.264 only).
  case render
  /// It is refused.
  case keyframe
}

/// What an export is to make.
public struct ExportSettings: Sendable {
  /// The file; its extension names the container: `.mov`, `.mp4` or `.m4v`.
  public var path: String
  /// Copied or rendered.
  public var mode: ExportMode
  /// How the sound of retimed parts is made.
  public var audioTimePitchAlgorithm = AudioTimePitchAlgorithm.spectral
  /// What becomes of sound at speeds that `lowQuality` does not have.
  public var otherAudioSpeeds = UnsupportedSpeedPolicy.refused
  /// How rendered sound is stored: `aac`, or uncompressed, which only MOV holds; nil for as the
  /// source's where that is uncompressed and the file can hold it, else AAC.
  ///
  /// Sound that is uncompressed keeps its kind of samples.
  public var audioCodec: AudioCodec?
  /// What happens where a frame cannot be decoded.
  ///
  /// At a constant rate, `skip` leaves out the frames that would show it, and the one before stays
  /// on; the first and the last are held instead, as are frames that are encoded at cuts.
  public var undecodableFrames = UndecodableFramePolicy.stop
  /// The rate of the sensor, written where the source does not say it; nil to leave it so.
  public var captureFrameRate: FrameRate?
  /// Whether a file of this name may be replaced.
  public var overwrites = false

  /// Makes the settings of an export.
  public init(path: String, mode: ExportMode) {
    self.path = path
    self.mode = mode
  }

  /// libavformat's name of the container.
  ///
  /// - Throws: `MediaError` with `.unsupportedContainer`.
  func container() throws(MediaError) -> String {
    guard let container = MovieContainer(path: path) else {
      throw MediaError(
        .unsupportedContainer, "\(path) does not say by its extension what to write",
        recovery: "name it .mov, .mp4 or .m4v, which keep exact times")
    }
    return container.rawValue
  }
}
