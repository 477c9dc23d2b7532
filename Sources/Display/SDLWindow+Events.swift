// SPDX-License-Identifier: Apache-2.0

import CSDL2

extension SDLWindow {
  /// Returns the events that arrived since the last call.
  func events() -> [WindowEvent] {
    var events: [WindowEvent] = []
    var event = SDL_Event()
    while SDL_PollEvent(&event) != 0 {
      if let known = Self.event(event) { events.append(known) }
    }
    return events
  }

  private static func event(_ event: SDL_Event) -> WindowEvent? {
    switch SDL_EventType(rawValue: event.type) {
    case SDL_QUIT: .closed
    case SDL_WINDOWEVENT:
      switch UInt32(event.window.event) {
      case UInt32(SDL_WINDOWEVENT_SIZE_CHANGED.rawValue):
        .resized(
          PixelSize(width: Int(event.window.data1), height: Int(event.window.data2)))
      case UInt32(SDL_WINDOWEVENT_EXPOSED.rawValue): .exposed
      case UInt32(SDL_WINDOWEVENT_CLOSE.rawValue): .closed
      default: nil
      }
    case SDL_TEXTINPUT: text(event.text)
    case SDL_KEYDOWN: key(event.key.keysym)
    case SDL_MOUSEBUTTONDOWN:
      button(event.button.button).map { .pressed($0, point(event.button.x, event.button.y)) }
    case SDL_MOUSEBUTTONUP: button(event.button.button).map { .released($0) }
    case SDL_MOUSEMOTION: .moved(point(event.motion.x, event.motion.y))
    case SDL_MOUSEWHEEL:
      .wheel(Double(event.wheel.preciseY), point(event.wheel.mouseX, event.wheel.mouseY))
    default: nil
    }
  }

  private static func point(_ x: Int32, _ y: Int32) -> ViewPoint {
    ViewPoint(x: Double(x), y: Double(y))
  }

  private static func button(_ number: UInt8) -> WindowEvent.Button? {
    switch Int32(number) {
    case SDL_BUTTON_LEFT: .left
    case SDL_BUTTON_MIDDLE: .middle
    case SDL_BUTTON_RIGHT: .right
    default: nil
    }
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
      Int(SDLK_KP_PLUS.rawValue): "+", Int(SDLK_KP_MINUS.rawValue): "-",
    ]
    var prefix = ""
    if key.mod & UInt16(KMOD_CTRL.rawValue) != 0 { prefix += "ctrl+" }
    if key.mod & UInt16(KMOD_ALT.rawValue) != 0 { prefix += "alt+" }
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
