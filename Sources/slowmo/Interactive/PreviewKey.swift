// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The keys of `preview` and their effects.
enum PreviewKey: String, CaseIterable {
  case peaking = "p"
  case zebra = "z"
  case histogram = "h"
  case mirror = "m"
  case gravity = "g"
  case rotate = "r"
  case zoomIn = "+"
  case zoomOut = "-"
  case zoomReset = "0"
  case torch = "t"
  case faces = "f"
  case codes = "k"
  case photo = "s"
  case windowScreenshot = "ctrl+s"
  case longerDelay = "up"
  case shorterDelay = "down"
  case slower = "["
  case faster = "]"
  case resetClipping = "c"
  case trigger = "space"
  case help = "?"
  case quit = "q"

  /// Finds a key by the name of the key or of another key for the same action.
  init?(name: some StringProtocol) {
    self.init(rawValue: name == "f1" ? "?" : String(name))
  }

  /// The keys and their effects, as help shows them.
  static let descriptions = [
    KeyDescription("p z h", "focus peaking, zebra, histogram"),
    KeyDescription("m r g", "mirror, rotation by 90 degrees, gravity"),
    KeyDescription("+ - 0", "zoom of the camera: in, out, none"),
    KeyDescription("t", "torch"),
    KeyDescription("f k", "outlines of faces, of codes"),
    KeyDescription("up down", "1 s more and less delay"),
    KeyDescription("[ ]", "half and double speed"),
    KeyDescription("s ctrl+s", "take a photo (preview-0001.jpg), write the window as PNG"),
    KeyDescription("c", "clear the overload mark of the audio level"),
    KeyDescription("? f1", "show the keys in the window"),
    KeyDescription("q", "quit"),
  ]

  /// The further keys, and the effects of the pointer, in a window.
  static let windowDescriptions = [
    KeyDescription("space", "trigger a clip, in record --preview --trigger"),
    KeyDescription("tab return", "choose a button, press it"),
    KeyDescription("click", "focus and expose at this point"),
    KeyDescription("wheel", "zoom of the camera"),
  ]

  /// The state that the buttons of a window show.
  struct ButtonState: Hashable {
    var isMirrored = false
    var isTorchOn = false
    var showsFaces = false
    var showsCodes = false
    var aids = PreviewAids()
    var showsHistogram = false
    /// Whether the preview belongs to a recording.
    var isRecording = false
    /// Whether a trigger records a clip.
    var canTrigger = false
  }

  /// The buttons of a window.
  static func buttons(_ state: ButtonState) -> [ViewButton] {
    let trigger = [ViewButton("space", "trigger", "record a clip around this moment: space")]
    return (state.canTrigger ? trigger : []) + [
      ViewButton("s", "photo", "take a photo: s"),
      ViewButton("+", "zoom in", "zoom in: +, or the wheel"),
      ViewButton("-", "zoom out", "zoom out: -; 0 for no zoom"),
      ViewButton("t", "torch", "switch the torch: t", isOn: state.isTorchOn),
      ViewButton("f", "faces", "outline faces: f", isOn: state.showsFaces),
      ViewButton("k", "codes", "outline codes, with their text: k", isOn: state.showsCodes),
      ViewButton("m", "mirror", "mirror the preview: m", isOn: state.isMirrored),
      ViewButton("r", "rotate", "rotate the preview by 90 degrees: r"),
      ViewButton("p", "peaking", "mark sharp edges: p", isOn: state.aids.showsFocusPeaking),
      ViewButton("z", "zebra", "mark areas that are too bright: z", isOn: state.aids.showsZebra),
      ViewButton("h", "histogram", "show the histogram: h", isOn: state.showsHistogram),
      ViewButton("?", "keys ?", "show all keys: ?"),
      state.isRecording
        ? ViewButton("q", "stop", "end the recording: q, or close the window")
        : ViewButton("q", "quit", "quit: q, or close the window"),
    ]
  }
}

/// The action of a line of `preview --script`: a key or a tap.
enum PreviewAction {
  case key(PreviewKey)
  /// A tap at a point of the view, as fractions of its width and height from 0 to 1.
  case tap(x: Double, y: Double)

  /// Lines of a script, for the hint of an error.
  static let example = "0.5 p or 0.5 tap:0.25,0.5"

  init?(_ word: Substring) {
    guard word.hasPrefix("tap:") else {
      guard let key = PreviewKey(name: word) else { return nil }
      self = .key(key)
      return
    }
    let parts = word.dropFirst(4).split(separator: ",").map { Double($0) }
    guard parts.count == 2, let x = parts[0], let y = parts[1], (0...1).contains(x),
      (0...1).contains(y)
    else { return nil }
    self = .tap(x: x, y: y)
  }
}
