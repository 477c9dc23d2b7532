// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank

/// A running preview: shows frames, and performs the keys of a script or a view.
///
/// Only the main thread uses it.
final class PreviewRun {
  /// The overlays, the duration and the script of a preview.
  struct Settings {
    var aids = PreviewAids()
    var showsHistogram = false
    /// The longest duration of the preview; nil for no limit.
    var duration: MediaTime?
    /// The keys of a script; its last key ends the preview.
    ///
    /// Nil without a script.
    var script: [ScriptLine<PreviewAction>]?
    /// Returns the levels of the audio channels.
    var levels: () -> [AudioLevel] = { [] }
    /// Returns the state of the recording; nil without a recording.
    var recording: (() -> PreviewStatus.Recording)?
    /// Returns true when the preview should end.
    var isOver: () -> Bool = { false }
    /// Finds faces and codes; nil if the program cannot.
    var recognition: (any ObjectRecognition)?
    /// Triggers a clip; nil if the recording has no triggers.
    var trigger: (() -> Void)?
  }

  let source: PreviewSource
  private let view: any PreviewView
  private let input: DeviceInput
  private let photos: PreviewPhotos
  private let objects: PreviewObjects
  private var settings: Settings
  private let clock = MonotonicHostClock()
  private let start: MediaTime
  /// The time at which the first frame arrived; nil before that.
  ///
  /// The script's times count from there.
  private var scriptStart: MediaTime?
  private var controls: CameraControls?
  private var isTorchOn = false
  private var shownFrameCount = 0
  /// The number of shown frames at which a step of the script ends; nil if none waits for frames.
  private var wantedFrameCount: Int?
  private(set) var events: [PreviewDocument.Event] = []

  private var content = PreviewContent()
  /// The state of the buttons in the content; nil before the first image.
  private var buttonState: PreviewKey.ButtonState?
  /// The frame on screen.
  ///
  /// Its memory is reused once another frame is shown.
  private var frame: PreviewFrame?
  private var geometry: PreviewGeometry?
  private var status = PreviewStatus()
  private var first: PreviewArrivals?
  /// The counts of frames and recorded bytes about a second ago, from which rates are computed.
  private var measured: (arrivals: PreviewArrivals, bytes: Int64, time: MediaTime)?
  private var drawn: MediaTime
  private var message = ""
  private var messageEnd: MediaTime
  private var focusEnd: MediaTime
  private var blinkEnd: MediaTime

  /// The shortest time between two images.
  ///
  /// It is less than the period at 60 fps, so that frames of such a camera never wait.
  private static let period = Rational(1, over: 80)
  /// The time after which text and meters are drawn again, even without a new image.
  private static let textPeriod = Rational(1, over: 10)

  init(
    _ source: PreviewSource, in session: CaptureSession, of input: DeviceInput,
    view: any PreviewView, settings: Settings
  ) {
    (self.source, self.view, self.input, self.settings) = (source, view, input, settings)
    photos = PreviewPhotos(session)
    objects = PreviewObjects(session, settings.recognition)
    start = clock.now
    (drawn, messageEnd, focusEnd, blinkEnd) = (start, start, start, start)
  }

  /// Whether a script operates the view.
  var hasScript: Bool { settings.script != nil }

  /// The rate of all frames that arrived, in frames per second; nil if unknown.
  var measuredFrameRate: Rational? { first.flatMap { source.arrivals.exactFrameRate(since: $0) } }

  /// Shows the camera until a signal, a key, or the end of the script or of the duration.
  func show() throws {
    let end = settings.duration.map { after(start, $0.seconds) }
    var next = 0
    while !Interrupt.isRequested, !settings.isOver() {
      let now = clock.now
      if let end, now >= end { break }
      guard let inputs = view.takeInput() else { break }
      for input in inputs {
        switch input {
        case .key("escape") where !content.keyHelp.isEmpty, .tap where !content.keyHelp.isEmpty:
          content.keyHelp = []
        case .key(let name):
          guard let key = PreviewKey(name: name == "escape" ? "q" : name) else { continue }
          guard try press(key) else { return try finishPhotos() }
        case .tap(let point): tap(point)
        case .wheel(let steps): zoom(by: exp2(steps / 4))
        }
      }
      if let script = settings.script {
        // The times of a script count from the first frame, however long the camera takes to
        // deliver it.
        if scriptStart == nil, source.arrivals.frameCount > 0 { scriptStart = now }
        var isInputPending = false
        steps: while let scriptStart, next < script.count,
          now >= after(scriptStart, script[next].time?.seconds ?? .zero)
        {
          switch script[next].action {
          case .key(let action): guard try perform(action) else { return try finishPhotos() }
          case .step(let step): guard try perform(step) else { break steps }
          }
          next += 1
          // The view handles a step with the next input, and a later step sees its effect.
          if case .step = script[next - 1].action {
            isInputPending = true
            break
          }
        }
        if next >= script.count, !isInputPending { break }
      }
      try collectPhotos()
      try refresh(now)
      if view.isReady, geometry != nil, now - drawn >= Self.period {
        source.waitForFrame()
      } else {
        clock.sleep(until: after(now, Rational(1, over: 1_000)))
      }
    }
    try finishPhotos()
  }

  private func after(_ time: MediaTime, _ seconds: Rational) -> MediaTime {
    MediaTime(nanoseconds: nanoseconds(time.seconds + seconds))
  }

  // MARK: Images

  private func refresh(_ now: MediaTime) throws {
    guard view.isReady, now - drawn >= Self.period else { return }
    geometry = source.geometry(width: view.width, height: view.height)
    if let rect = geometry?.imageRect {
      content.imageRect = rect
      if let frame = try wholeFrame(fitting: rect, at: now) { show(frame) }
    }
    guard content.isNewImage || now - drawn >= Self.textPeriod else { return }
    updateText(now)
    try view.present(content)
    content.isNewImage = false
    drawn = now
  }

  /// Returns the new frame to show; nil if there is no new frame or if it is damaged.
  ///
  /// A damaged frame is counted in the ledger and not shown.
  private func wholeFrame(
    fitting rect: Rect, at time: MediaTime
  ) throws(MediaError) -> PreviewFrame? {
    do throws(MediaError) { return try source.nextFrame(fitting: rect, at: time) } catch {
      if error.code == .invalidData { return nil }
      throw error
    }
  }

  private func show(_ frame: PreviewFrame) {
    var image = frame.image
    content.histogram = settings.showsHistogram ? LumaHistogram(image) : nil
    settings.aids.apply(to: &image)
    content.image = image
    content.isNewImage = true
    shownFrameCount += 1
    self.frame = frame
    status.exposureDuration = frame.exposureDuration
  }

  private func updateText(_ now: MediaTime) {
    let arrivals = source.arrivals
    if first == nil, arrivals.frameCount > 0 { first = arrivals }
    let recording = settings.recording?()
    if let before = measured {
      let elapsed = now - before.time
      if elapsed >= Rational(1) {
        status.frameRate = arrivals.frameRate(since: before.arrivals)
        status.bytesPerSecond =
          Double((recording?.bytes ?? 0) - before.bytes) / elapsed.doubleValue
        measured = (arrivals, recording?.bytes ?? 0, now)
      }
    } else if arrivals.frameCount > 0 {
      measured = (arrivals, recording?.bytes ?? 0, now)
    }
    status.lost = source.missingCount
    status.recording = recording
    status.histogram = content.histogram
    (status.delay, status.speed) = (source.delay, source.speed)
    let levels = settings.levels()
    status.peakDBFS = levels.map(\.peakDBFS).max()
    if content.meters.count != levels.count {
      content.meters = Array(repeating: LevelMeterDisplay(), count: levels.count)
    }
    for (channel, level) in levels.enumerated() {
      content.meters[channel].update(peakDBFS: level.peakDBFS, at: now)
    }
    content.gauge = recording?.preRoll?.gauge
    // A delayed image does not show the objects that are found now.
    content.overlays = source.delay > .zero ? [] : geometry.map(objects.overlays) ?? []
    let state = PreviewKey.ButtonState(
      isMirrored: source.isMirrored, isTorchOn: isTorchOn,
      showsFaces: objects.kinds.contains(.faces), showsCodes: objects.kinds.contains(.codes),
      aids: settings.aids, showsHistogram: settings.showsHistogram,
      isRecording: settings.recording != nil, canTrigger: settings.trigger != nil)
    if state != buttonState { (content.buttons, buttonState) = (PreviewKey.buttons(state), state) }
    content.status = now < messageEnd ? message : status.text
    content.isBlinking = now < blinkEnd
    if now >= focusEnd { content.focusPoint = nil }
  }

  // MARK: Input

  private func note(_ type: String, _ detail: String) {
    events.append(
      PreviewDocument.Event(atNs: nanoseconds(clock.now - start), type: type, detail: detail))
  }

  private func report(_ text: String) {
    message = text
    messageEnd = after(clock.now, Rational(2))
  }

  private func perform(_ action: PreviewAction) throws -> Bool {
    switch action {
    case .key(let key): return try press(key)
    case .tap(let x, let y):
      tap(Point(x: x * Double(view.width), y: y * Double(view.height)))
      return true
    }
  }

  /// Performs a step of a script that is no key.
  ///
  /// - Returns: False if the step waits, and must be performed again later.
  /// - Throws: `CommandError` for a step that the view does not know.
  private func perform(_ step: ViewStep) throws -> Bool {
    switch step {
    case .frames(let count):
      let wanted = wantedFrameCount ?? shownFrameCount + count
      wantedFrameCount = wanted
      guard shownFrameCount >= wanted else { return false }
      wantedFrameCount = nil
    case .wait(let event):
      throw CommandError(
        .badData, code: "syntax", "the script waits for \(event), which preview does not know",
        hint: "wait for frames: frames N")
    case .image(let path):
      guard let data = try view.pngData() else {
        throw CommandError(
          .badData, code: "syntax", "the script writes \(path), but the view has no image",
          hint: "leave out --terminal")
      }
      try Files.write(path, Data(data), overwrites: false)
      note("screenshot", path)
    case .key, .move, .click, .hold, .release, .drag, .wheel:
      // The first image brings the buttons.
      guard buttonState != nil else { return false }
      guard view.perform(step) else {
        throw CommandError(
          .badData, code: "syntax", "the view does not have the control of a step of the script",
          hint: "name a button by its key or text, or a point by X,Y from 0 to 1")
      }
    }
    return true
  }

  /// Performs the action of a key.
  ///
  /// - Returns: False for the key that ends the preview.
  private func press(_ key: PreviewKey) throws -> Bool {
    note("key", key.rawValue)
    switch key {
    case .quit: return false
    case .peaking: settings.aids.showsFocusPeaking.toggle()
    case .zebra: settings.aids.showsZebra.toggle()
    case .histogram: settings.showsHistogram.toggle()
    case .mirror: try source.setMirrored(!source.isMirrored)
    case .gravity:
      let all = PreviewGravity.allCases
      let index = all.firstIndex(of: source.gravity) ?? 0
      source.gravity = all[(index + 1) % all.count]
      report(source.gravity.rawValue)
    case .longerDelay: try changeDelay(by: 1)
    case .shorterDelay: try changeDelay(by: -1)
    case .slower: try changeSpeed { $0 / 2 }
    case .faster: try changeSpeed { $0 * 2 }
    case .resetClipping:
      for channel in content.meters.indices { content.meters[channel].resetClipping() }
    case .rotate:
      do throws(MediaError) { report("rotated by \(try source.rotate()) degrees") } catch {
        report(error.message)
      }
    case .zoomIn: zoom(by: 2.0.squareRoot())
    case .zoomOut: zoom(by: 0.5.squareRoot())
    case .zoomReset: zoom(by: 0)
    case .torch: toggleTorch()
    case .faces: toggle(.faces)
    case .codes: toggle(.codes)
    case .trigger:
      guard let trigger = settings.trigger else {
        report("clips need slowmo record --preview --trigger key")
        break
      }
      let preRoll = settings.recording?().preRoll
      trigger()
      let isIgnored = preRoll.map { $0.armsWhenFull && !$0.isFull } ?? false
      report(isIgnored ? "ignored: the pre-roll is not full yet" : "triggered")
    case .help:
      content.keyHelp =
        content.keyHelp.isEmpty ? PreviewKey.descriptions + PreviewKey.windowDescriptions : []
    case .photo: takePhoto()
    case .windowScreenshot:
      try write("screenshot", stem: "preview-window", extension: "png") { () throws(MediaError) in
        try view.pngData()
      }
    }
    return true
  }

  /// Multiplies the zoom factor of the camera, within its limits.
  private func zoom(by factor: Double) {
    let maximum = input.videoMaxZoomFactor
    guard maximum > 1 else { return report("the camera has no zoom in this mode") }
    do throws(MediaError) {
      let wanted = min(max(1, input.videoZoomFactor * factor), maximum)
      report("zoom \(decimal(try input.setVideoZoomFactor(wanted), 2))")
    } catch { report(error.message) }
  }

  /// The controls of the camera.
  private func cameraControls() throws(MediaError) -> CameraControls {
    if let controls { return controls }
    let made = try CameraControls(device: input.device)
    controls = made
    return made
  }

  private func toggleTorch() {
    do throws(MediaError) {
      try cameraControls().setTorchMode(isTorchOn ? .off : .on)
      isTorchOn.toggle()
      report(isTorchOn ? "torch on" : "torch off")
    } catch { report(error.message) }
  }

  private func toggle(_ kind: PreviewObjects.Kind) {
    do throws(MediaError) {
      try objects.toggle(kind)
      report(objects.kinds.contains(kind) ? "outlines \(kind.rawValue)" : "no \(kind.rawValue)")
    } catch { report(error.message) }
  }

  private func changeDelay(by seconds: Rational) throws {
    let wanted = max(.zero, source.delay.seconds + seconds)
    try setDelay(MediaTime(nanoseconds: nanoseconds(wanted)), source.speed)
    report("delay \(decimal(source.delay.doubleValue, 1)) s")
  }

  private func setDelay(_ delay: MediaTime, _ speed: Speed) throws {
    // A new output counts frames from zero, so the rates are measured anew.
    if try source.setDelay(delay, speed: speed) { (first, measured) = (nil, nil) }
  }

  /// Changes the speed of a delayed image; 1/32 is the lowest.
  private func changeSpeed(_ body: (Rational) -> Rational) throws {
    guard source.delay > .zero else { return report("a slower image needs a delay") }
    let wanted = min(1, max(Rational(1, over: 32), body(source.speed.fraction)))
    try setDelay(source.delay, Speed(wanted))
    report("speed \(source.speed)")
  }

  /// Sets the point of interest for focus and exposure from a point of the view.
  private func tap(_ point: Point) {
    let geometry = self.geometry ?? source.geometry(width: view.width, height: view.height)
    guard let target = geometry?.devicePoint(fromViewPoint: point), (0...1).contains(target.x),
      (0...1).contains(target.y)
    else { return }
    let text = "\(decimal(target.x, 4)),\(decimal(target.y, 4))"
    note("tap", text)
    content.focusPoint = point
    focusEnd = after(clock.now, Rational(1))
    do throws(MediaError) {
      let controls = try cameraControls()
      var changed: [String] = []
      if controls.isFocusPointOfInterestSupported {
        try controls.setFocusPointOfInterest(target)
        changed.append("focus")
      }
      if controls.isExposurePointOfInterestSupported {
        try controls.setExposurePointOfInterest(target)
        changed.append("exposure")
      }
      report(
        changed.isEmpty
          ? "the camera has no region of interest"
          : "\(changed.joined(separator: " and ")) at \(text)")
    } catch { report(error.message) }
  }

  // MARK: Photos

  private func takePhoto() {
    do throws(MediaError) {
      try photos.take()
      blinkEnd = after(clock.now, Rational(1, over: 8))
    } catch {
      reportFailure(error)
    }
  }

  private func collectPhotos() throws {
    for result in photos.finished() {
      switch result {
      case .success(let data): try write("photo", stem: "preview", extension: "jpg") { data }
      case .failure(let error): reportFailure(error)
      }
    }
  }

  /// Writes a file under the next unused name, and logs it as an event.
  ///
  /// - Throws: With a script, the error of a file that cannot be written. Without a script, the
  ///   error is only shown.
  private func write(
    _ type: String, stem: String, extension: String, _ data: () throws(MediaError) -> [UInt8]?
  ) throws(MediaError) {
    do throws(MediaError) {
      guard let data = try data() else { return }
      let name = try NumberedFile.write(data, prefix: "\(stem)-", extension: `extension`)
      note(type, name)
      report("written: \(name)")
    } catch {
      reportFailure(error)
      if settings.script != nil { throw error }
    }
  }

  private func reportFailure(_ error: MediaError) {
    note("failed", error.message)
    report(error.message)
  }

  /// Waits until the requested photos are finished.
  private func finishPhotos() throws {
    while photos.pendingCount > 0, !Interrupt.isRequested {
      try collectPhotos()
      clock.sleep(until: after(clock.now, Rational(1, over: 100)))
    }
  }
}
