// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

extension TakeWriter {
  static let videoTrack = 0
  static let audio = 1

  /// Creates the file's header at the first frame, because the codec parameters are unknown before
  /// that frame.
  mutating func begin(
    _ image: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(LibAVError) {
    guard let parameters, let first else {
      throw LibAVError("begin", path, code: -22)
    }
    let (ticks, time) = (sample.decodeTime, sample.time)
    let packet = try Packet(
      copying: image, pts: time, dts: ticks, duration: 1, isKeyFrame: true)
    var index = MovieIndex(MovieContainer(path: path) ?? .mov, timescale: 1_000_000)
    index.tags = makeMetadata(first, plannedLeadIn)
    var video = TrackMuxer.Format(parameters, in: index.container, timescale: 1_000_000)
    if let geometry {
      video.displayMatrix = geometry.rotation.displayMatrix(
        width: delivery.width, height: delivery.height)
      if plan.isCopy {
        cleanAperture = aperture(
          ofFactor: geometry.outputFactor(atMicroseconds: first.microseconds))
      }
    }
    var tracks = [
      try FragmentedMovieWriter.Track(
        video, first: FirstSample(ticks: ticks, presentationTicks: time), packet: packet,
        cleanAperture: cleanAperture.map { .init(width: $0.width, height: $0.height) }, path: path)
    ]
    firstDecodeTime = ticks
    if let audio {
      let track = try AudioTrack(
        source: audio, codec: audioCodec, originMicroseconds: first.microseconds,
        after: earlierAudio)
      tracks.append(try track.head(of: path))
      audioTrack = consume track
    }
    try LibAVError.converting { () throws(SystemError) in
      movie = try FragmentedMovieWriter(
        file, index: index, tracks: tracks, layout: layout, reservesSpace: reservesSpace)
      for frame in early { try movie?.note(frame) }
    }
    early = []
  }

  /// The part of a copied frame that players should show at a zoom factor.
  func aperture(ofFactor factor: Double) -> CleanAperture? {
    CleanAperture(width: delivery.width, height: delivery.height, factor: factor)
  }

  /// The fragment layout: a new fragment starts every 150 ms, not only at key frames.
  ///
  /// If each key frame started a fragment, MJPEG would get one fragment per frame, because all its
  /// frames are key frames. If the process is killed, the open fragment and the queued frames are
  /// lost, together at most 0.25 s.
  var layout: FragmentedMovieWriter.Layout {
    // A camera may exceed its nominal rate, so a fragment has space for more frames than expected.
    let frames = Int(min(frameRate.doubleValue, 10_000) / 4)
    let blocks = audio.map { AudioBlockEncoder.packetsPerSecond(atRate: $0.sampleRate) / 4 + 8 }
    var layout = FragmentedMovieWriter.Layout(
      fragmentTicks: 150_000, samplesPerFragment: frames + (blocks ?? 4),
      unflushedFrames: unflushedFrames)
    layout.isReordered = plan.isReordered
    return layout
  }

  mutating func write(
    _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(LibAVError) {
    try append(bytes, sample, parameters)
    storedCount += 1
    frameBytes += Int64(bytes.count)
    // The times are kept in presentation order. If frames are reordered, a few frames with later
    // times may have been stored before this frame.
    var index = storedMicroseconds.count
    while index > 0, storedMicroseconds[index - 1] > sample.time { index -= 1 }
    storedMicroseconds.insert(sample.time, at: index)
  }

  mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ sample: VideoSample, _ parameters: CodecParameters?
  ) throws(LibAVError) {
    if movie == nil { try begin(bytes, sample, parameters) }
    let duration = sample.time < 0 ? 1 : periodMicroseconds
    try LibAVError.converting { () throws(SystemError) in
      try movie?.append(
        bytes, track: Self.videoTrack, ticks: sample.decodeTime,
        presentationOffset: sample.time &- sample.decodeTime, duration: duration,
        isKeyFrame: sample.isKeyFrame, isDroppable: sample.isDroppable)
    }
    lastDecodeTime = sample.decodeTime
  }

  /// Stores the metadata values of those frames that are stored already.
  ///
  /// Set `isEnd` after the last frame of the file.
  mutating func storeValues(isEnd: Bool = false) throws(LibAVError) {
    guard !values.waiting.isEmpty, movie != nil else { return }
    let end: PendingValues.End = isEnd ? nextFileStart.map { .file($0) } ?? .take : .none
    // Reordered frames may still be stored between the last ones, so metadata values of the last 32
    // frames wait.
    let stored = values.take(
      times: storedMicroseconds, margin: plan.isReordered ? 32 : 0, clock: account.clock, end: end)
    guard let first = stored.first else { return }
    _ = try LibAVError.converting { () throws(SystemError) in
      try movie?.attach(TimedValue.encode(stored), ticks: first.ticks)
    }
  }

  /// The state of the audio from which the take's next file continues.
  ///
  /// Call this after the current file is finished.
  func audioContinuation() -> AudioTrack.Continuation? {
    audioTrack?.continuation(atMicroseconds: endMicroseconds)
  }

  mutating func writeAudio(_ packets: [Packet]) throws(LibAVError) {
    for packet in packets {
      guard let time = packet.pts else { continue }
      let duration = packet.duration
      try packet.withBytes { (bytes) throws(LibAVError) in
        try LibAVError.converting { () throws(SystemError) in
          try movie?.append(
            bytes, track: Self.audio, ticks: time, duration: duration, isKeyFrame: true)
        }
      }
    }
  }
}
