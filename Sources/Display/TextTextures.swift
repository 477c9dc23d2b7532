// SPDX-License-Identifier: Apache-2.0

import CSDL2

/// A cache of textures, each with one text that was drawn into it.
///
/// A line of text has hundreds of rectangles, which take a software renderer about a millisecond.
/// Most texts stay the same for many frames, so each text is drawn only once into a texture.
///
/// The owner of the renderer must call ``removeAll()`` before it destroys the renderer.
struct TextTextures {
  private struct Key: Hashable {
    let text: String
    let scale: Int
    let color: DisplayColor
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

  /// Draws a text from its upper left corner.
  ///
  /// - Returns: False if the renderer cannot create a texture for the text.
  mutating func draw(_ text: String, x: Int, y: Int, scale: Int, _ color: DisplayColor) -> Bool {
    let key = Key(text: text, scale: scale, color: color)
    stamp += 1
    guard let entry = entries[key] ?? makeEntry(key) else { return false }
    entries[key, default: entry].stamp = stamp
    var target = SDL_Rect(
      ViewRect(x: x, y: y, width: entry.width, height: entry.height))
    return SDL_RenderCopy(renderer, entry.texture, nil, &target) == 0
  }

  /// Destroys all textures.
  mutating func removeAll() {
    for entry in entries.values { SDL_DestroyTexture(entry.texture) }
    entries = [:]
  }

  private mutating func makeEntry(_ key: Key) -> Entry? {
    let width = DrawingText.width(key.text, scale: key.scale)
    let height = DrawingText.height(scale: key.scale)
    guard width > 0, height > 0,
      let texture = SDL_CreateTexture(
        renderer, SDL_PIXELFORMAT_ARGB8888.rawValue,
        Int32(SDL_TEXTUREACCESS_STATIC.rawValue), Int32(clamping: width), Int32(clamping: height))
    else { return nil }
    let pixels = pixels(key, width, height)
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

  /// The pixels of a text as `0xAARRGGBB`: the dots have the text's color, and all other pixels are
  /// transparent.
  private func pixels(_ key: Key, _ width: Int, _ height: Int) -> [UInt32] {
    let (color, transparent) = (key.color.argb, key.color.argb & 0xFF_FFFF)
    var pixels = [UInt32](repeating: transparent, count: width * height)
    for area in DrawingText.rectangles(key.text, x: 0, y: 0, scale: key.scale) {
      for row in area.y..<area.y + area.height {
        for column in area.x..<area.x + area.width { pixels[row * width + column] = color }
      }
    }
    return pixels
  }
}

extension DisplayColor {
  /// The color as `0xAARRGGBB`.
  fileprivate var argb: UInt32 {
    UInt32(alpha) << 24 | UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue)
  }
}
