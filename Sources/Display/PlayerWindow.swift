// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
public import OvercrankMediaCore
public import OvercrankPlayback
package import OvercrankPreview
import OvercrankRaster

/// A window that shows one player, or two side by side on one clock.
///
/// The window shows the frame that is due at each screen refresh, the position, and a time line
/// with thumbnails, segments and their speeds. Dragging on the time line scrubs, the wheel zooms
/// into pixels, and dragging on an image moves it. The window does not react to keys, but reports
/// them by ``takeInput()``. Its buttons report keys too.
///
/// ```swift
/// let window = try PlayerWindow([player])
/// let clock = MonotonicHostClock()
/// while !window.takeInput().contains(.closed) {
///   let refresh = try MediaTime(clock.now + MediaTime(nanoseconds: 16_666_667))
///   try window.present(at: refresh)
///   clock.sleep(until: refresh)
/// }
/// ```
///
/// Only the thread that created the window may use it, which should be the main thread.
public final class PlayerWindow {
  private let players: [Player]
  private let clipNames: [String]
  private let window: SDLWindow
  private let loader: ThumbnailLoader?
  var scene: PlayerScene
  private var gesture = PointerGesture()
  private var scrub = Scrub()
  private var composition: Composition
  private var thumbnails = ThumbnailLine()
  private var converters: [Int: PaneConverter] = [:]
  private var uploaded: [Int: PlayerScene.Frame] = [:]
  private var shown: PlayerScene?
  private var mustDraw = true
  private var waiting: [WindowEvent] = []
  private var pointer: Point?
  private var shapeGesture = ShapeGesture()
  private var drawnShapes: [ViewShape] = []
  private var droppedFile: String?

  /// The marked position, from which the status line shows the time difference to the playhead; nil
  /// for no mark.
  public var mark: PlayerTime?
  /// The composition times that the time line shows as marks; if empty, the time line shows
  /// ``mark``.
  public var marks: [Rational] = []
  /// The start of the selected range, in composition time, which the time line shows; nil for no
  /// range.
  public var rangeStart: Rational? {
    get { scene.rangeStart }
    set { scene.rangeStart = newValue }
  }
  /// The end of the selected range, in composition time; nil for a range without an end.
  public var rangeEnd: Rational? {
    get { scene.rangeEnd }
    set { scene.rangeEnd = newValue }
  }
  /// The buttons that appear when the pointer moves; each reports its key.
  package var buttons: [ViewButton] {
    get { scene.bar.buttons }
    set { scene.bar.buttons = newValue }
  }
  /// The keys that ``showsHelp`` shows.
  package var keyHelp: [KeyDescription] {
    get { scene.keyHelp }
    set { scene.keyHelp = newValue }
  }
  /// Whether the table of keys is shown; a click or escape ends it.
  package var showsHelp: Bool {
    get { scene.showsHelp }
    set { scene.showsHelp = newValue }
  }
  /// Whether the pointer draws shapes on the first image, in place of its other effects there.
  package var isMeasuring = false
  /// The shapes that the first image shows.
  package var shapes: [ViewShape] {
    get { scene.shapes }
    set { scene.shapes = newValue }
  }
  /// The shape that the pointer is drawing; nil for none.
  package var draftShape: ViewShape? { shapeGesture.draft }

  /// Returns the shapes that were drawn since the last call.
  package func takeShapes() -> [ViewShape] {
    defer { drawnShapes = [] }
    return drawnShapes
  }

  /// Returns the path of the last file that the user dropped since the last call; nil for none.
  package func takeDroppedFile() -> String? {
    defer { droppedFile = nil }
    return droppedFile
  }

  /// The key that a click on an image reports; nil for none.
  package var clickKey: String?
  /// The key that a double click on an image reports, after two clicks; nil for none.
  package var doubleClickKey: String?
  /// A text that the status line shows instead of the position; empty for no text.
  public var message: String {
    get { scene.message }
    set { scene.message = newValue }
  }
  /// True if the frames of all players were decoded in time for the last call of
  /// ``present(at:rate:)``.
  public private(set) var isCurrent = false

  /// Throws if the process has no screen on which it could open a window.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  public static func checkDisplay() throws(MediaError) { try SDLWindow.check() }

  /// Opens a window.
  ///
  /// - Parameters:
  ///   - players: The players, from left to right. The first player receives the commands of the
  ///     window. The others should be followers of the first player, see `Player.makeFollower`. An
  ///     empty list traps.
  ///   - settings: The settings.
  /// - Throws: `MediaError` with `.noDisplay`, `.outOfMemory`.
  public init(
    _ players: [Player], settings: PlayerWindowSettings = PlayerWindowSettings()
  ) throws(MediaError) {
    precondition(!players.isEmpty, "a window shows at least one player")
    self.players = players
    let size = Self.size(players, settings)
    window = try SDLWindow(title: settings.title, size: size)
    loader = settings.showsThumbnails ? try ThumbnailLoader(height: 48) : nil
    composition = players[0].composition
    clipNames = settings.clipNames
    scene = PlayerScene(
      size: window.size, panes: players.map { _ in PlayerScene.Pane() },
      timeline: TimelineContent(composition))
    scene.density = window.textDensity
    if let clip = Self.clipSize(players[0]), clip.height > 0 {
      scene.thumbnailAspect = Double(clip.width) / Double(clip.height)
    }
  }

  deinit { loader?.close() }

  // MARK: Input

  /// Performs the pointer gestures that the user made since the last call, and returns the input
  /// that the window does not handle itself.
  public func takeInput() -> [WindowInput] {
    let events = waiting + window.events()
    waiting = []
    return events.compactMap(handle)
  }

  /// Performs a step of a script, as if the user did it; ``takeInput()`` then handles it.
  ///
  /// - Returns: False if the window does not have the control that the step names.
  package func perform(_ step: ViewStep) -> Bool {
    guard let events = scene.events(of: step) else { return false }
    waiting += events
    return true
  }

  /// Adds an event, as if the window system had reported it.
  func post(_ event: WindowEvent) { waiting.append(event) }

  private func handle(_ event: WindowEvent) -> WindowInput? {
    if endsHelp(event) { return nil }
    switch scene.handle(event) {
    case .pressed(let key): return .key(key)
    case .handled, .held, .changed, .selected: return nil
    case .none: break
    }
    switch event {
    case .key(let name): return .key(name)
    case .keyUp: break
    case .closed: return .closed
    case .dropped(let path):
      droppedFile = path
      return .dropped(path)
    case .exposed: mustDraw = true
    case .resized: resize()
    case .pressed, .moved, .released, .doubleClicked, .wheel:
      if case .moved(let point) = event {
        pointer = point
        // While the pointer draws, the buttons would cover the image. They appear from the time line.
        if !isMeasuring || scene.imagePoint(at: point) == nil {
          scene.bar.show()
        }
      }
      if isMeasuring, draws(event) { return nil }
      let actions = gesture.handle(event, scene.layout, duration: scene.timeline.duration)
      return actions.compactMap(perform).last
    case .pointerLeft:
      scene.bar.pointerLeft()
      pointer = nil
    }
    return nil
  }

  /// Draws a shape with the pointer.
  ///
  /// - Returns: True if the event has no other effect.
  private func draws(_ event: WindowEvent) -> Bool {
    let last = drawnShapes.last ?? scene.shapes.last
    switch shapeGesture.handle(event, after: last, scene.imagePoint) {
    case .none: return false
    case .handled: return true
    case .finished(let shape):
      drawnShapes.append(shape)
      return true
    }
  }

  /// Hides the help if an event asks for it.
  ///
  /// - Returns: True if the event has no other effect.
  private func endsHelp(_ event: WindowEvent) -> Bool {
    guard scene.showsHelp else { return false }
    switch event {
    case .pressed, .key("escape"):
      scene.showsHelp = false
      return true
    default: return false
    }
  }

  /// Whether the window stays as it is until the next input, or the next change by the program,
  /// except that thumbnails may arrive.
  package var isIdle: Bool {
    let player = players[0]
    return !mustDraw && waiting.isEmpty && isCurrent && scrub.target == nil
      && !scene.bar.isHiding && [.paused, .ended].contains(player.state)
  }

  /// Waits until input arrives, but not longer than a number of milliseconds.
  package func waitForInput(milliseconds: Int) {
    if waiting.isEmpty { window.waitForEvent(milliseconds: milliseconds) }
  }

  /// The number of times the window was drawn and shown.
  var presentCount: Int { window.presentCount }

  /// Performs the action of a gesture.
  ///
  /// - Returns: The input that the gesture stands for, or nil if the window has performed it.
  @discardableResult
  private func perform(_ action: PointerGesture.Action) -> WindowInput? {
    switch action {
    case .click: return clickKey.map { .key($0) }
    case .doubleClick: return doubleClickKey.map { .key($0) }
    case .beginScrub: scrub.begin(players[0])
    case .scrub(let time): scrub.move(to: time)
    case .endScrub: scrub.end(players[0])
    case .pan(let pane, let x, let y): pan(x: x, y: y, pane: pane)
    case .zoom(let pane, let factor, let point):
      guard let image = scene.panes[pane].frame?.size else { return nil }
      scene.panes[pane].viewport.zoom(
        by: factor, around: point, of: image, in: scene.layout.panes[pane])
    }
    return nil
  }

  /// Sets the size of the window in pixels.
  public func resize(width: Int, height: Int) {
    window.resize(to: VideoSize(width: width, height: height))
    resize()
  }

  private func resize() {
    (scene.size, scene.density) = (window.size, window.textDensity)
    // Moving each image by zero pixels limits its position to the new size of its pane.
    for pane in scene.panes.indices { pan(x: 0, y: 0, pane: pane) }
    mustDraw = true
  }

  // MARK: View

  /// Shows the buttons for a while, as if the pointer had moved.
  package func showButtons() { scene.bar.show() }

  /// Multiplies the zoom of all images, around their centers.
  public func zoom(by factor: Double) {
    for (pane, area) in scene.layout.panes.enumerated() {
      perform(.zoom(pane: pane, factor: factor, around: area.middle))
    }
  }

  /// Moves all images by a fraction of their pane's size.
  ///
  /// For example, an `x` of 0.1 moves them to the right by a tenth of the pane's width.
  public func pan(x: Double, y: Double) {
    for (pane, area) in scene.layout.panes.enumerated() {
      pan(x: x * Double(area.width), y: y * Double(area.height), pane: pane)
    }
  }

  private func pan(x: Double, y: Double, pane: Int) {
    guard let image = scene.panes[pane].frame?.size else { return }
    scene.panes[pane].viewport.pan(x: x, y: y, of: image, in: scene.layout.panes[pane])
  }

  /// Resets the zoom, so that all images are shown completely.
  public func resetZoom() {
    for pane in scene.panes.indices { scene.panes[pane].viewport = ImageViewport() }
  }

  /// Switches between full screen and a window.
  public func toggleFullScreen() {
    window.toggleFullScreen()
    resize()
  }

  // MARK: Output

  /// Shows the frames that are due at a screen refresh.
  ///
  /// Draws only if something has changed.
  ///
  /// - Parameters:
  ///   - time: The time on the players' clock at which the refresh becomes visible.
  ///   - rate: The playback rate to show in the status line; nil shows the rate of the first
  ///     player.
  /// - Throws: `MediaError` with `.noDisplay` if the renderer fails, `.notConvertible` for a pixel
  ///   format that libswscale does not support.
  public func present(at time: MediaTime, rate: Rational? = nil) throws(MediaError) {
    scrub.update(players[0])
    let frames = players.map { $0.frame(at: time) }
    isCurrent = players.allSatisfy(\.isFrameCurrent) && players[0].state != .seeking
    for (pane, frame) in frames.enumerated() { try show(frame, in: pane) }
    for (pane, name) in zip(players.indices, clipNames) where !name.isEmpty {
      let text = players[pane].time(at: time).text(isSynthesized: isSynthesized(pane))
      scene.panes[pane].title = "\(name) · \(text)"
    }
    update(players[0].time(at: time), rate: rate)
    scene.bar.update(at: time)
    try updateThumbnails()
    window.present(scene, instead: &shown, if: &mustDraw, \.drawing)
  }

  private func show(_ frame: PlayerFrame?, in pane: Int) throws(MediaError) {
    guard let frame else {
      scene.panes[pane].frame = nil
      return
    }
    let image = frame.image
    let next = PlayerScene.Frame(
      path: frame.path, index: frame.index, synthesizedTime: frame.isSynthesized ? frame.time : nil,
      stored: VideoSize(width: image.width, height: image.height), rotation: frame.rotation)
    scene.panes[pane].frame = next
    guard uploaded[pane] != next else { return }
    let format = TextureFormat(image)
    let converter = converters[pane] ?? PaneConverter()
    converters[pane] = converter
    try window.upload(
      format == .bgra ? converter.bgra(image) : image, as: format, to: .frame(pane: pane))
    uploaded[pane] = next
    mustDraw = true
  }

  private func isSynthesized(_ pane: Int) -> Bool {
    scene.panes[pane].frame?.synthesizedTime != nil
  }

  private func update(_ time: PlayerTime, rate: Rational?) {
    let player = players[0]
    let current = player.composition
    if current != composition {
      composition = current
      scene.timeline = TimelineContent(current)
    }
    scene.position = scrub.target ?? time.composition
    scene.loop = player.loop
    // If the program sets ``marks``, only they are shown and not ``mark``, because an edit of the
    // composition moves ``marks`` but not ``mark``.
    scene.marks = marks.isEmpty ? mark.map { [$0.composition] } ?? [] : marks
    scene.isPlaying = player.state == .playing
    scene.status = time.text(
      rate: rate ?? player.rate, since: mark, isSynthesized: isSynthesized(0))
    if isMeasuring, let point = pointer.flatMap(scene.imagePoint) {
      let (x, y) = (Int(point.x.rounded(.down)), Int(point.y.rounded(.down)))
      scene.status = "pixel \(x),\(y) · \(scene.status)"
    }
  }

  private func updateThumbnails() throws(MediaError) {
    guard let loader else { return }
    if let wanted = thumbnails.update(scene, composition, players[0]) { loader.request(wanted) }
    for (slot, image) in thumbnails.add(loader.takeDecoded()) {
      try window.upload(image, as: .bgra, to: .thumbnail(slot))
    }
    scene.thumbnails = thumbnails.sizes
  }

  /// True if all thumbnails of the time line are decoded, or there are none.
  var hasAllThumbnails: Bool { loader == nil || thumbnails.sizes.allSatisfy { $0 != nil } }

  /// Draws the window again without its message, and returns its pixels in RGB.
  func pixels() throws(MediaError) -> MediaFrame {
    var scene = scene
    scene.message = ""
    window.draw(scene.drawing)
    // The next call of `present` draws the window again, with the message.
    mustDraw = true
    return try window.pixels()
  }

  /// Returns the window as a PNG file, without its message.
  ///
  /// - Throws: `MediaError` with `.noDisplay` if the renderer cannot read its pixels.
  public func pngData() throws(MediaError) -> [UInt8] {
    try pixels().windowPNG()
  }

  /// The size of a player's first frame after its rotation, or nil if the composition begins with a
  /// gap.
  static func clipSize(_ player: Player) -> VideoSize? {
    player.frameReference(at: .zero)?.asset.videoTrack.map { track in
      VideoSize(width: track.width, height: track.height).rotated(by: track.rotation)
    }
  }

  /// The size of a new window: the size in the settings or, if none is set, a size that fits the
  /// clips.
  ///
  /// Small clips are enlarged by an integer factor. Large clips are reduced to at most 1280x720.
  static func size(_ players: [Player], _ settings: PlayerWindowSettings) -> VideoSize {
    let clips = players.map { clipSize($0) ?? VideoSize(width: 640, height: 360) }
    var width = clips.map(\.width).reduce(0, +)
    var height = clips.map(\.height).max() ?? 360
    let factor = max(1, min(960 / max(1, width), 600 / max(1, height)))
    width *= factor
    height *= factor
    let (largestWidth, largestHeight) = (1_280, 720)
    width += WindowLayout.gap * (players.count - 1)
    if width > largestWidth { (width, height) = (largestWidth, height * largestWidth / width) }
    if height > largestHeight { (width, height) = (width * largestHeight / height, largestHeight) }
    width = settings.width > 0 ? settings.width : max(480, width)
    // A window of 1000 pixels is high enough for the complete panel, so the panel's height can be
    // read from its layout.
    let tall = VideoSize(width: width, height: 1_000)
    let panel = WindowLayout(tall, paneCount: players.count).panel.height
    return VideoSize(
      width: width, height: settings.height > 0 ? settings.height : max(180, height) + panel)
  }
}

/// Converts the frames of a pane to RGB.
///
/// This type is a class because the converter is noncopyable and a dictionary cannot store
/// noncopyable values.
final class PaneConverter {
  private var converter = FrameConverter(to: .bgra, isFullRange: true, quality: .fast)

  /// Converts a frame to BGRA.
  ///
  /// - Throws: `MediaError` with `.notConvertible`.
  func bgra(_ frame: MediaFrame) throws(MediaError) -> MediaFrame {
    do throws(CallFailure) { return try converter.convert(frame) } catch {
      throw MediaError(.notConvertible, "the frame cannot be shown: \(error)")
    }
  }
}

/// A drag on the time line: the player shows key frames while the pointer moves, and the exact
/// frame when the pointer rests.
struct Scrub {
  /// The composition time under the pointer; nil while nothing is dragged.
  private(set) var target: Rational?
  private var hasMoved = false
  private var isExact = true
  private var rate = Rational.zero

  /// Pauses the player and stores the rate at which it was playing.
  mutating func begin(_ player: Player) {
    rate = player.rate
    player.pause()
  }

  mutating func move(to time: Rational) {
    guard target != time else { return }
    target = time
    (hasMoved, isExact) = (true, false)
  }

  /// Seeks the player to the pointer's time.
  ///
  /// Call this once per screen refresh.
  mutating func update(_ player: Player) {
    guard let target, !isExact else { return }
    player.seek(to: time(target), tolerance: hasMoved ? .nearestKeyFrame : .exact)
    isExact = !hasMoved
    hasMoved = false
  }

  /// Seeks to the pointer's last time, and continues playback if the player was playing before the
  /// drag.
  mutating func end(_ player: Player) {
    guard let target else { return }
    player.seek(to: time(target))
    // Setting this rate cannot fail, because the rate was read from the same player.
    try? player.setRate(rate)
    self = Scrub()
  }

  private func time(_ seconds: Rational) -> MediaTime {
    let units = try? (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    return MediaTime(nanoseconds: Int64(clamping: units ?? 0))
  }
}

/// The settings of a player's window.
public struct PlayerWindowSettings: Hashable, Sendable {
  /// The title of the window.
  public var title = ""
  /// The names of the clips, one for each player, which are shown on the images together with the
  /// position.
  ///
  /// Empty shows no names.
  public var clipNames: [String] = []
  /// The width of the window in pixels; zero for a width that fits the clips.
  public var width = 0
  /// The height of the window in pixels; zero for a height that fits the clips.
  public var height = 0
  /// Whether a row of thumbnails is shown above the time line.
  public var showsThumbnails = true

  /// Creates the default settings: a window that fits the clips, with thumbnails.
  public init() {}
}
