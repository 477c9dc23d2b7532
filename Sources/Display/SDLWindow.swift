// SPDX-License-Identifier: Apache-2.0

import CSDL2
import FoundationEssentials
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// An SDL window with its renderer and textures.
///
/// Only this type and ``TextTextures`` call SDL. Only the thread that created the window may use
/// it. SDL requires this to be the main thread.
final class SDLWindow {
  /// An SDL texture, with the pixel format, size and conversion to RGB that it was created for.
  private struct Texture {
    let pointer: OpaquePointer
    let format: UInt32
    let size: VideoSize
    /// The conversion from YUV; nil for RGB.
    let mode: SDL_YUV_CONVERSION_MODE?
    /// Whether pixels are interpolated; nil before the texture is drawn.
    var isSmooth: Bool?
  }

  private let window: OpaquePointer
  private let renderer: OpaquePointer
  private var textures: [DrawingCommand.Image: Texture] = [:]
  private var texts: TextTextures
  private var drawnScenes = 0

  /// Throws if the process has no screen.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  static func check() throws(MediaError) {
    try start()
    SDL_QuitSubSystem(UInt32(SDL_INIT_VIDEO))
  }

  /// Initializes SDL's video subsystem.
  ///
  /// Each call needs a matching `SDL_QuitSubSystem`.
  private static func start() throws(MediaError) {
    let environment = ProcessInfo.processInfo.environment
    // Without an X11 or Wayland server, SDL would try all of its video drivers, whose libraries
    // print messages. So this call fails instead.
    guard
      SDL_GetHint(SDL_HINT_VIDEODRIVER) != nil
        || ["DISPLAY", "WAYLAND_DISPLAY"].contains(where: { environment[$0]?.isEmpty == false })
    else { throw .noDisplay("neither DISPLAY nor WAYLAND_DISPLAY is set") }
    SDL_SetMainReady()
    // SDL must not install signal handlers, because the program handles signals itself.
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1")
    SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1")
    guard SDL_InitSubSystem(UInt32(SDL_INIT_VIDEO)) == 0 else { throw .noDisplay(lastError) }
  }

  /// Opens a window.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  init(title: String, size: VideoSize) throws(MediaError) {
    try Self.start()
    // This is the value of SDL_WINDOWPOS_CENTERED, a macro that Swift does not import.
    let centered: Int32 = 0x2FFF_0000
    guard
      let window = SDL_CreateWindow(
        title, centered, centered, Int32(clamping: size.width), Int32(clamping: size.height),
        UInt32(SDL_WINDOW_RESIZABLE.rawValue | SDL_WINDOW_ALLOW_HIGHDPI.rawValue))
    else {
      let reason = Self.lastError
      SDL_QuitSubSystem(UInt32(SDL_INIT_VIDEO))
      throw .noDisplay(reason)
    }
    // The renderer has no vertical synchronization, because waiting for it would delay the handling
    // of keys.
    let made =
      SDL_CreateRenderer(window, -1, 0)
      ?? SDL_CreateRenderer(window, -1, UInt32(SDL_RENDERER_SOFTWARE.rawValue))
    guard let made else {
      let reason = Self.lastError
      SDL_DestroyWindow(window)
      SDL_QuitSubSystem(UInt32(SDL_INIT_VIDEO))
      throw .noDisplay(reason)
    }
    self.window = window
    renderer = made
    texts = TextTextures(renderer: made)
    SDL_SetRenderDrawBlendMode(renderer, SDL_BLENDMODE_BLEND)
    SDL_StartTextInput()
  }

  deinit {
    texts.removeAll()
    for texture in textures.values { SDL_DestroyTexture(texture.pointer) }
    SDL_DestroyRenderer(renderer)
    SDL_DestroyWindow(window)
    SDL_QuitSubSystem(UInt32(SDL_INIT_VIDEO))
  }

  private static var lastError: String { String(cString: SDL_GetError()) }

  /// The size of the window's drawing area, in pixels.
  var size: VideoSize {
    var (width, height) = (Int32(0), Int32(0))
    SDL_GetRendererOutputSize(renderer, &width, &height)
    return VideoSize(width: Int(width), height: Int(height))
  }

  /// The number of pixels per unit of SDL's window coordinates; above 1 on a screen with a high
  /// density.
  var density: Double {
    var width = Int32(0)
    SDL_GetWindowSize(window, &width, nil)
    return width > 0 ? max(1, Double(size.width) / Double(width)) : 1
  }

  /// The factor by which texts are larger than on a usual screen.
  var textDensity: Int { Int(density.rounded()) }

  /// Switches between full screen and a window.
  func toggleFullScreen() {
    let mode = UInt32(SDL_WINDOW_FULLSCREEN_DESKTOP.rawValue)
    SDL_SetWindowFullscreen(window, SDL_GetWindowFlags(window) & mode == mode ? 0 : mode)
  }

  /// Sets the size of the window in pixels.
  func resize(to size: VideoSize) {
    let density = density
    func units(_ pixels: Int) -> Int32 {
      Int32(clamping: Int((Double(pixels) / density).rounded()))
    }
    SDL_SetWindowSize(window, units(size.width), units(size.height))
  }

  // MARK: Images

  /// Uploads the pixels of an image to the renderer.
  ///
  /// - Throws: `MediaError` with `.noDisplay` if the renderer has no memory for the image.
  func upload(
    _ frame: MediaFrame, as format: TextureFormat, to image: DrawingCommand.Image
  ) throws(MediaError) {
    let size = VideoSize(width: frame.width, height: frame.height)
    let texture = try texture(format, size, image)
    func line(_ plane: Int) -> Int32 { Int32(clamping: frame.bytesPerRow(plane)) }
    let result =
      switch format {
      case .planar:
        SDL_UpdateYUVTexture(
          texture, nil, frame.planeData(0), line(0), frame.planeData(1), line(1),
          frame.planeData(2), line(2))
      case .biplanar:
        SDL_UpdateNVTexture(
          texture, nil, frame.planeData(0), line(0), frame.planeData(1), line(1))
      case .packed, .bgra: SDL_UpdateTexture(texture, nil, frame.planeData(0), line(0))
      }
    guard result == 0 else { throw .noDisplay(Self.lastError) }
  }

  /// Uploads the pixels of a BGRA image to the renderer.
  ///
  /// - Throws: `MediaError` with `.noDisplay` if the renderer has no memory for the image.
  func upload(_ pixels: PixelBuffer, to image: DrawingCommand.Image) throws(MediaError) {
    let size = VideoSize(width: pixels.width, height: pixels.height)
    let texture = try texture(.bgra, size, image)
    let result = pixels.withUnsafeBytes(ofPlane: 0) { bytes in
      SDL_UpdateTexture(texture, nil, bytes.baseAddress, Int32(clamping: pixels.width * 4))
    }
    guard result == 0 else { throw .noDisplay(Self.lastError) }
  }

  private func texture(
    _ layout: TextureFormat, _ size: VideoSize, _ image: DrawingCommand.Image
  ) throws(MediaError) -> OpaquePointer {
    let (format, mode) = (layout.pixelFormat.rawValue, layout.mode)
    // The software renderer converts to RGB during the upload, `opengl` chooses its shader when it
    // creates a texture, and `opengles2` when it draws.
    if let mode { SDL_SetYUVConversionMode(mode) }
    if let known = textures[image] {
      if known.format == format, known.size == size, known.mode == mode { return known.pointer }
      SDL_DestroyTexture(known.pointer)
      textures[image] = nil
    }
    guard
      let made = SDL_CreateTexture(
        renderer, format, Int32(SDL_TEXTUREACCESS_STREAMING.rawValue), Int32(clamping: size.width),
        Int32(clamping: size.height))
    else { throw .noDisplay(Self.lastError) }
    // Blending is switched off, because video frames have no transparency.
    SDL_SetTextureBlendMode(made, SDL_BLENDMODE_NONE)
    textures[image] = Texture(pointer: made, format: format, size: size, mode: mode)
    return made
  }

  // MARK: Drawing

  /// Draws a list of commands, which ``present()`` then shows.
  func draw(_ list: [DrawingCommand]) {
    for command in list {
      switch command {
      case .fill(let area, let color): fill([area], color)
      case .line(let start, let end, let width, let clip, let color):
        line(start, end, width, clip, color)
      case .text(let text, let x, let y, let scale, let color):
        if !text.isEmpty, !texts.draw(text, x: x, y: y, scale: scale, color) {
          // Without a texture, text is drawn in rectangles.
          fill(
            InstalledFont.standard.mask(of: text, scale: scale).rectangles(x: x, y: y), color)
        }
      case .image(let image, let source, let destination, let rotation, let isSmooth):
        copy(image, source, destination, rotation, isSmooth)
      }
    }
  }

  private func fill(_ areas: [PixelRect], _ color: Color) {
    SDL_SetRenderDrawColor(renderer, color.red, color.green, color.blue, color.alpha)
    let rectangles = areas.filter { !$0.isEmpty }.map(SDL_Rect.init)
    SDL_RenderFillRects(renderer, rectangles, Int32(clamping: rectangles.count))
  }

  private func line(
    _ start: Point, _ end: Point, _ width: Int, _ clip: PixelRect, _ color: Color
  ) {
    SDL_SetRenderDrawColor(renderer, color.red, color.green, color.blue, color.alpha)
    var area = SDL_Rect(clip)
    SDL_RenderSetClipRect(renderer, &area)
    for offset in 0..<width {
      let shift = Double(offset) - Double(width - 1) / 2
      for (x, y) in [(shift, 0), (0, shift)] {
        SDL_RenderDrawLineF(
          renderer, Float(start.x + x), Float(start.y + y), Float(end.x + x), Float(end.y + y))
      }
    }
    SDL_RenderSetClipRect(renderer, nil)
  }

  private func copy(
    _ image: DrawingCommand.Image, _ source: PixelRect, _ destination: PixelRect, _ rotation: Int,
    _ isSmooth: Bool
  ) {
    guard let texture = textures[image] else { return }
    // SDL's conversion mode is global, so it is set before each image.
    if let mode = texture.mode { SDL_SetYUVConversionMode(mode) }
    if texture.isSmooth != isSmooth {
      SDL_SetTextureScaleMode(
        texture.pointer, isSmooth ? SDL_ScaleModeLinear : SDL_ScaleModeNearest)
      // With `opengl`, SDL 2.26 binds the chroma planes in place of the luma plane to change their
      // mode, but still takes the texture for bound. It would draw chroma as luma, which is gray.
      SDL_GL_UnbindTexture(texture.pointer)
      textures[image]?.isSmooth = isSmooth
    }
    var from = SDL_Rect(source)
    // SDL rotates the target rectangle around its center. So the rectangle to pass is the rectangle
    // before the rotation, which has the same center.
    let isTransposed = rotation % 180 != 0
    let (width, height) =
      isTransposed
      ? (destination.height, destination.width) : (destination.width, destination.height)
    var to = SDL_FRect(
      x: Float(destination.x) + Float(destination.width - width) / 2,
      y: Float(destination.y) + Float(destination.height - height) / 2,
      w: Float(width), h: Float(height))
    SDL_RenderCopyExF(
      renderer, texture.pointer, &from, &to, Double(rotation), nil, SDL_FLIP_NONE)
    if texture.mode != nil { SDL_RenderFlush(renderer) }
  }

  /// Shows the drawn content on the screen.
  func present() { SDL_RenderPresent(renderer) }

  /// Draws and shows a scene instead of the shown one, if it is another one or must be drawn again.
  ///
  /// The drawing is made only then.
  func present<Scene: Equatable>(
    _ scene: Scene, instead shown: inout Scene?, if mustDraw: inout Bool,
    _ drawing: (Scene) -> [DrawingCommand]
  ) {
    guard mustDraw || scene != shown else { return }
    draw(drawing(scene))
    present()
    drawnScenes += 1
    (shown, mustDraw) = (scene, false)
  }

  /// The number of scenes that were drawn and shown.
  var presentCount: Int { drawnScenes }

  /// Reads the pixels of what was drawn since the last ``present()``.
  ///
  /// - Throws: `MediaError` with `.noDisplay` if the renderer cannot read the pixels.
  func pixels() throws(MediaError) -> MediaFrame {
    let size = size
    do {
      let image = try MediaFrame.video(
        width: size.width, height: size.height, pixelFormat: .rgb24)
      let result = SDL_RenderReadPixels(
        renderer, nil, SDL_PIXELFORMAT_RGB24.rawValue, image.planeData(0),
        Int32(clamping: image.bytesPerRow(0)))
      guard result == 0 else { throw MediaError.noDisplay(Self.lastError) }
      return image
    } catch let error as MediaError {
      throw error
    } catch {
      throw .noDisplay("\(error)")
    }
  }
}

extension TextureFormat {
  fileprivate var pixelFormat: SDL_PixelFormatEnum {
    switch self {
    case .planar: SDL_PIXELFORMAT_IYUV
    case .biplanar: SDL_PIXELFORMAT_NV12
    case .packed: SDL_PIXELFORMAT_YUY2
    // SDL names this format by the byte order in an integer, which is the reverse of the order in
    // memory.
    case .bgra: SDL_PIXELFORMAT_ARGB8888
    }
  }

  fileprivate var mode: SDL_YUV_CONVERSION_MODE? {
    switch self {
    case .planar(let conversion), .biplanar(let conversion), .packed(let conversion):
      switch conversion {
      case .bt601: SDL_YUV_CONVERSION_BT601
      case .bt709: SDL_YUV_CONVERSION_BT709
      case .fullRange601: SDL_YUV_CONVERSION_JPEG
      }
    case .bgra: nil
    }
  }
}

extension SDL_Rect {
  init(_ area: PixelRect) {
    self.init(
      x: Int32(clamping: area.x), y: Int32(clamping: area.y), w: Int32(clamping: area.width),
      h: Int32(clamping: area.height))
  }
}

extension SDLWindow {
  /// Returns the events that arrived since the last call.
  func events() -> [WindowEvent] {
    var events: [WindowEvent] = []
    var event = SDL_Event()
    // SDL reports the pointer in window coordinates, and this type in pixels.
    let density = density
    func point(_ x: Int32, _ y: Int32) -> Point {
      Point(x: Double(x) * density, y: Double(y) * density)
    }
    while SDL_PollEvent(&event) != 0 {
      if let known = Self.event(event, point) { events.append(known) }
      if event.type == SDL_MOUSEBUTTONUP.rawValue, Int32(event.button.button) == SDL_BUTTON_LEFT,
        event.button.clicks > 0, event.button.clicks % 2 == 0
      {
        events.append(.doubleClicked(point(event.button.x, event.button.y)))
      }
    }
    return events
  }

  /// Waits until an event arrives, but not longer than a number of milliseconds.
  ///
  /// The event stays for ``events()``.
  func waitForEvent(milliseconds: Int) { SDL_WaitEventTimeout(nil, Int32(clamping: milliseconds)) }

  private static func event(
    _ event: SDL_Event, _ point: (_ x: Int32, _ y: Int32) -> Point
  ) -> WindowEvent? {
    switch SDL_EventType(rawValue: event.type) {
    case SDL_QUIT: .closed
    case SDL_WINDOWEVENT:
      switch UInt32(event.window.event) {
      case UInt32(SDL_WINDOWEVENT_SIZE_CHANGED.rawValue):
        .resized(
          VideoSize(width: Int(event.window.data1), height: Int(event.window.data2)))
      case UInt32(SDL_WINDOWEVENT_EXPOSED.rawValue): .exposed
      case UInt32(SDL_WINDOWEVENT_CLOSE.rawValue): .closed
      case UInt32(SDL_WINDOWEVENT_LEAVE.rawValue): .pointerLeft
      default: nil
      }
    case SDL_TEXTINPUT: text(event.text)
    case SDL_DROPFILE: dropped(event.drop)
    case SDL_KEYDOWN: key(event.key.keysym)
    case SDL_KEYUP where key(event.key.keysym) == .key("return"): .keyUp("return")
    case SDL_MOUSEBUTTONDOWN:
      button(event.button.button).map { .pressed($0, point(event.button.x, event.button.y)) }
    case SDL_MOUSEBUTTONUP: button(event.button.button).map { .released($0) }
    case SDL_MOUSEMOTION: .moved(point(event.motion.x, event.motion.y))
    case SDL_MOUSEWHEEL:
      .wheel(Double(event.wheel.preciseY), point(event.wheel.mouseX, event.wheel.mouseY))
    default: nil
    }
  }

  private static func button(_ number: UInt8) -> WindowEvent.Button? {
    switch Int32(number) {
    case SDL_BUTTON_LEFT: .left
    case SDL_BUTTON_MIDDLE: .middle
    case SDL_BUTTON_RIGHT: .right
    default: nil
    }
  }

  private static func dropped(_ event: SDL_DropEvent) -> WindowEvent? {
    guard let file = event.file else { return nil }
    // SDL leaves the memory of the path to the receiver.
    defer { SDL_free(file) }
    return .dropped(String(cString: file))
  }

  /// Returns the character that a key types, which depends on the layout of the keyboard.
  private static func text(_ event: SDL_TextInputEvent) -> WindowEvent? {
    let text = withUnsafeBytes(of: event.text) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    return text.isEmpty ? nil : .key(text == " " ? "space" : text)
  }

  /// Returns a key that types no character, or a key pressed together with a modifier.
  private static func key(_ key: SDL_Keysym) -> WindowEvent? {
    let code = Int(key.sym)
    let names: [Int: String] = [
      Int(SDLK_LEFT.rawValue): "left", Int(SDLK_RIGHT.rawValue): "right",
      Int(SDLK_UP.rawValue): "up", Int(SDLK_DOWN.rawValue): "down",
      Int(SDLK_HOME.rawValue): "home", Int(SDLK_END.rawValue): "end",
      Int(SDLK_BACKSPACE.rawValue): "backspace", Int(SDLK_ESCAPE.rawValue): "escape",
      Int(SDLK_TAB.rawValue): "tab", Int(SDLK_RETURN.rawValue): "return",
      Int(SDLK_KP_ENTER.rawValue): "return", Int(SDLK_F1.rawValue): "f1",
      Int(SDLK_KP_PLUS.rawValue): "+", Int(SDLK_KP_MINUS.rawValue): "-",
    ]
    var prefix = ""
    if key.mod & UInt16(KMOD_CTRL.rawValue) != 0 { prefix += "ctrl+" }
    if key.mod & UInt16(KMOD_ALT.rawValue) != 0 { prefix += "alt+" }
    if code == Int(SDLK_TAB.rawValue), key.mod & UInt16(KMOD_SHIFT.rawValue) != 0 {
      prefix += "shift+"
    }
    if let name = names[code], !(prefix.isEmpty && ["+", "-"].contains(name)) {
      return .key(prefix + name)
    }
    guard !prefix.isEmpty, (0x21..<0x7F).contains(code), let scalar = Unicode.Scalar(code) else {
      return nil
    }
    // On most keyboard layouts, plus is typed with the key of the equals sign, so that key counts
    // as plus.
    return .key(prefix + (scalar == "=" ? "+" : String(Character(scalar))))
  }
}

/// A cache of textures, each with one text that was drawn into it.
///
/// Most texts stay the same for many frames, so each text is drawn only once into a texture.
///
/// The owner of the renderer must call ``removeAll()`` before it destroys the renderer.
struct TextTextures {
  private struct Key: Hashable {
    let text: String
    let scale: Int
    let color: Color
  }

  private struct Entry {
    let texture: OpaquePointer
    let width: Int
    let height: Int
    /// The number of the last use of this texture, where later uses have higher numbers.
    var stamp: Int
  }

  private let renderer: OpaquePointer
  private var entries: [Key: Entry] = [:]
  private var stamp = 0

  /// The greatest number of stored textures.
  ///
  /// A window shows fewer texts at once.
  private static let maximumEntries = 64

  init(renderer: OpaquePointer) { self.renderer = renderer }

  /// Draws a text from the upper left corner of its capital letters.
  ///
  /// - Returns: False if the renderer cannot create a texture for the text.
  mutating func draw(_ text: String, x: Int, y: Int, scale: Int, _ color: Color) -> Bool {
    let key = Key(text: text, scale: scale, color: color)
    stamp += 1
    guard let entry = entries[key] ?? makeEntry(key) else { return false }
    entries[key, default: entry].stamp = stamp
    var target = SDL_Rect(
      PixelRect(
        x: x, y: y - TextMask.overhang * scale, width: entry.width, height: entry.height))
    return SDL_RenderCopy(renderer, entry.texture, nil, &target) == 0
  }

  /// Destroys all textures.
  mutating func removeAll() {
    for entry in entries.values { SDL_DestroyTexture(entry.texture) }
    entries = [:]
  }

  private mutating func makeEntry(_ key: Key) -> Entry? {
    let mask = InstalledFont.standard.mask(of: key.text, scale: key.scale)
    let (width, height) = (mask.width, mask.height)
    guard width > 0, height > 0,
      let texture = SDL_CreateTexture(
        renderer, SDL_PIXELFORMAT_ARGB8888.rawValue,
        Int32(SDL_TEXTUREACCESS_STATIC.rawValue), Int32(clamping: width), Int32(clamping: height))
    else { return nil }
    let pixels = pixels(mask, key.color)
    guard SDL_UpdateTexture(texture, nil, pixels, Int32(clamping: width * 4)) == 0 else {
      SDL_DestroyTexture(texture)
      return nil
    }
    SDL_SetTextureBlendMode(texture, SDL_BLENDMODE_BLEND)
    SDL_SetTextureScaleMode(texture, SDL_ScaleModeNearest)
    if entries.count >= Self.maximumEntries,
      let oldest = entries.min(by: { $0.value.stamp < $1.value.stamp })
    {
      SDL_DestroyTexture(oldest.value.texture)
      entries[oldest.key] = nil
    }
    return Entry(texture: texture, width: width, height: height, stamp: stamp)
  }

  /// The pixels of a text as `0xAARRGGBB`, with the text's color in all of them.
  private func pixels(_ mask: TextMask, _ color: Color) -> [UInt32] {
    mask.coverage.map { coverage in
      let alpha = UInt32(color.alpha) * UInt32(coverage) / 255
      return color.argb & 0xFF_FFFF | alpha << 24
    }
  }
}

extension Color {
  /// The color as `0xAARRGGBB`.
  fileprivate var argb: UInt32 {
    UInt32(alpha) << 24 | UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue)
  }
}

extension MediaFrame {
  /// The pixels of a window as a PNG file.
  func windowPNG() throws(MediaError) -> [UInt8] {
    do throws(CallFailure) { return try pngBytes() } catch {
      throw .noDisplay("its pixels cannot be written as PNG: \(error)")
    }
  }
}
