// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The image of a camera, shown live or with a delay.
final class PreviewSource {
  private enum Output {
    case live(VideoPreview)
    case delayed(DelayedVideoPreview)
  }

  private let session: CaptureSession
  private var output: Output
  private let clock = MonotonicHostClock()
  /// The policy for fitting the image into the view.
  var gravity: PreviewGravity
  /// The counts of the live output, which was replaced by a delayed one.
  private var replaced: (ledger: DataOutputLedger, missingCount: Int64)?

  /// The longest delay that the user can choose while the preview runs.
  private static let longestDelay = MediaTime(seconds: 60)

  /// Adds a preview to a session.
  ///
  /// A front camera is shown mirrored, as in a mirror; any other only if `isMirrored` is true.
  ///
  /// - Throws: `MediaError` if the camera's frames cannot be shown, or memory is short.
  init(
    _ session: CaptureSession, delay: MediaTime, speed: Speed, isMirrored: Bool,
    gravity: PreviewGravity
  ) throws(MediaError) {
    (self.session, self.gravity) = (session, gravity)
    output =
      delay > .zero
      ? .delayed(try Self.delayed(session, delay, speed))
      : .live(try VideoPreview(session: session))
    if isMirrored { try setMirrored(true) }
  }

  private static func delayed(
    _ session: CaptureSession, _ delay: MediaTime, _ speed: Speed
  ) throws(MediaError) -> DelayedVideoPreview {
    try DelayedVideoPreview(
      session: session, delay: delay, speed: speed, maximumDelay: longestDelay,
      memoryLimit: RecordingMemory.availableBytes() / 2)
  }

  private var connection: CaptureConnection? {
    switch output {
    case .live(let preview): preview.connection
    case .delayed(let preview): preview.connection
    }
  }

  /// Whether the image is mirrored; if not, it is shown as the camera sees it.
  var isMirrored: Bool { connection?.isVideoMirrored ?? false }

  /// Mirrors the image, or shows it as the camera sees it.
  func setMirrored(_ isMirrored: Bool) throws(MediaError) {
    connection?.automaticallyAdjustsVideoMirroring = false
    try connection?.setVideoMirrored(isMirrored)
  }

  /// Rotates the image clockwise by another 90 degrees.
  ///
  /// - Returns: The angle in degrees.
  func rotate() throws(MediaError) -> Int {
    let angle = (rotationAngle + 90) % 360
    try connection?.setVideoRotationAngle(angle)
    return angle
  }

  private var rotationAngle: Int { connection?.videoRotationAngle ?? 0 }

  /// The delay of the image; zero for a live image.
  var delay: MediaTime {
    if case .delayed(let preview) = output { preview.delay } else { .zero }
  }

  var speed: Speed {
    if case .delayed(let preview) = output { preview.speed } else { .normal }
  }

  /// Changes the delay.
  ///
  /// If the image is live, a delayed output replaces the live output. The counts of the delayed
  /// output begin at zero.
  ///
  /// - Returns: Whether the live output was replaced.
  func setDelay(_ delay: MediaTime, speed: Speed) throws(MediaError) -> Bool {
    switch output {
    case .delayed(let preview):
      preview.setDelay(delay, speed: speed)
      return false
    case .live(let preview):
      guard delay > .zero else { return false }
      let (isMirrored, angle) = (isMirrored, rotationAngle)
      output = .delayed(try Self.delayed(session, delay, speed))
      replaced = (preview.ledger.replaced, preview.arrivals.missingCount)
      session.removeOutput(preview)
      try connection?.setVideoRotationAngle(angle)
      try setMirrored(isMirrored)
      return true
    }
  }

  /// The number of frames by outcome, since the preview began.
  var ledger: DataOutputLedger {
    let ledger =
      switch output {
      case .live(let preview): preview.ledger
      case .delayed(let preview): preview.ledger
      }
    return replaced.map { ledger.adding($0.ledger) } ?? ledger
  }

  /// The number of frames since the preview began that are missing according to the driver's
  /// counter.
  var missingCount: Int64 { arrivals.missingCount + (replaced?.missingCount ?? 0) }

  /// The counts and times of the frames that arrived at the current output.
  var arrivals: PreviewArrivals {
    switch output {
    case .live(let preview): preview.arrivals
    case .delayed(let preview): preview.arrivals
    }
  }

  /// The position of the image in a view; nil for a view without an area.
  func geometry(width: Int, height: Int) -> PreviewGeometry? {
    guard width > 0, height > 0 else { return nil }
    var geometry =
      switch output {
      case .live(let preview):
        preview.geometry(viewWidth: Double(width), viewHeight: Double(height))
      case .delayed(let preview):
        preview.geometry(viewWidth: Double(width), viewHeight: Double(height))
      }
    geometry?.gravity = gravity
    return geometry
  }

  /// Waits up to 4 ms for a live frame, or 1 ms for a delayed image.
  func waitForFrame() {
    if case .live(let preview) = output {
      // The wait is short, because keys are read between two waits.
      _ = preview.waitForNextFrame(milliseconds: 4)
    } else {
      clock.sleep(until: MediaTime(nanoseconds: clock.now.value + 1_000_000))
    }
  }

  /// Returns the frame to show at a time; nil if the frame on screen stays.
  func nextFrame(fitting rect: Rect, at time: MediaTime) throws(MediaError) -> PreviewFrame? {
    let (width, height) = (Int(rect.width.rounded(.up)), Int(rect.height.rounded(.up)))
    switch output {
    case .live(let preview):
      return try preview.nextFrame(as: .bgra, maximumWidth: width, maximumHeight: height)
    case .delayed(let preview):
      return try preview.nextFrame(as: .bgra, maximumWidth: width, maximumHeight: height, at: time)
    }
  }
}

extension DataOutputLedger {
  /// The ledger of an output that was replaced: its waiting frames count as dropped.
  var replaced: DataOutputLedger {
    var ledger = self
    ledger.dropped[.frameWasLate, default: 0] += waiting
    ledger.waiting = 0
    return ledger
  }

  /// Returns the sum of two ledgers.
  func adding(_ other: DataOutputLedger) -> DataOutputLedger {
    var sum = self
    sum.offered += other.offered
    sum.delivered += other.delivered
    sum.waiting += other.waiting
    sum.dropped.merge(other.dropped, uniquingKeysWith: +)
    return sum
  }
}

extension PreviewArrivals {
  /// The exact frame rate since an earlier value of these counts; nil if no frame arrived in
  /// between.
  func exactFrameRate(since earlier: PreviewArrivals) -> Rational? {
    guard let end = newestTime, let start = earlier.newestTime, end > start,
      frameCount > earlier.frameCount
    else { return nil }
    return Rational(Int128(frameCount - earlier.frameCount)) / (end - start)
  }
}
