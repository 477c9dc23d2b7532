// SPDX-License-Identifier: Apache-2.0

import Overcrank

// Measures a player on one clip whose frames carry their number in their pixels.
//
//   PlaybackTiming CLIP ROUNDS     prints lines of a measure and its value
//
// A step or a seek ends when the player has the frame; it is asked for every 0.1 ms, because a loop
// without a pause would take a processor from the decoder. Then the number is read from the pixels,
// and a wrong one ends the program. A change of speed is measured in samples:
// from the sample that is heard at the command to the first one at the new speed, plus the time in
// which that one is rendered.

let clock = MonotonicHostClock()
let asset = try Asset(path: CommandLine.arguments[1])
let rounds = Int(CommandLine.arguments[2]) ?? 5
let frameCount = asset.videoTrack?.frameCount ?? 0
/// The clips have 240 frames per second.
let rate: Int32 = 240

struct WrongFrame: Error {
  let measure: String
  let wanted: Int
  let shown: Int?
}

func milliseconds(since start: MediaTime) -> Double { (clock.now - start).doubleValue * 1_000 }

func sleep(milliseconds: Double) {
  clock.sleep(until: MediaTime(nanoseconds: clock.now.value + Int64(milliseconds * 1e6)))
}

/// Waits before the player is asked again.
func pause() { sleep(milliseconds: 0.1) }

/// Waits for the next refresh of a screen with 60 of them a second, and returns its time.
///
/// The frame on screen is that of this time, also when the thread wakes a little later.
func nextRefresh(after last: inout Int64) -> MediaTime {
  let period: Int64 = 16_666_667
  last += period * (1 + max(0, (clock.now.value - last) / period))
  clock.sleep(until: MediaTime(nanoseconds: last))
  return MediaTime(nanoseconds: last)
}

/// Reads the number from eleven blocks of 32 pixels, the lowest bit first.
func number(_ frame: PlayerFrame) throws -> Int {
  let pixels = try frame.pixelBuffer(as: .gray)
  return (0..<11).reduce(0) { number, block in
    let pixel = pixels.planes[0].offset + 16 * pixels.planes[0].bytesPerRow + block * 32 + 16
    return number | (pixels.bytes[pixel] > 120 ? 1 << block : 0)
  }
}

func current(_ player: Player) -> PlayerFrame? {
  guard player.state != .seeking, let frame = player.frame(at: clock.now), frame.isCurrent
  else { return nil }
  return frame
}

/// Waits until the frame of a command is decoded, checks it, and returns the time.
func measured(
  _ name: String, _ player: Player, wanted: Int, _ command: () -> Void
) throws -> Double {
  let start = clock.now
  command()
  while true {
    guard let frame = current(player) else {
      pause()
      continue
    }
    let time = milliseconds(since: start)
    let shown = try number(frame)
    guard shown == wanted else { throw WrongFrame(measure: name, wanted: wanted, shown: shown) }
    return time
  }
}

func measure(_ name: String, _ player: Player, wanted: Int, _ command: () -> Void) throws {
  print(name, try measured(name, player, wanted: wanted, command))
}

/// Waits for the frames that are decoded in advance.
func rest(_ player: Player) {
  var last = -1
  while last != player.decodedFrameBytes {
    last = player.decodedFrameBytes
    sleep(milliseconds: 400)
  }
}

func time(ofFrame index: Int) -> MediaTime { MediaTime(Int64(index), over: rate) }

func open() throws -> Player {
  let player = try Player(asset)
  while current(player) == nil { pause() }
  return player
}

func seeksAndSteps(_ round: Int) throws {
  let player = try open()
  defer { player.close() }
  let middle = frameCount * (3 + round) / (rounds + 6) + 7
  try measure("exact-seek", player, wanted: middle) { player.seek(to: time(ofFrame: middle)) }
  // A step out of the ring decodes a group again, from its start.
  try measure("step-back-cold", player, wanted: middle - 40) { player.step(by: -40) }
  rest(player)
  for step in 1...8 {
    try measure("step-back", player, wanted: middle - 40 - step) { player.step(by: -1) }
  }
}

/// A key that is held: 30 steps back per second, from a seek on.
///
/// One of the first three steps may wait for the decoder: which one depends on how many frames before
/// its target the seek has decoded anyway. The longest of them is measured by itself, and the worst of
/// all others.
func heldKey() throws {
  let player = try open()
  defer { player.close() }
  let middle = frameCount / 2 + 25
  _ = try measured("held-key", player, wanted: middle) { player.seek(to: time(ofFrame: middle)) }
  var latencies: [Double] = []
  let start = clock.now
  for step in 1...45 {
    let latency = try measured("held-key", player, wanted: middle - step) { player.step(by: -1) }
    latencies.append(latency)
    let next = start.value + Int64(step) * 1_000_000_000 / 30
    clock.sleep(until: MediaTime(nanoseconds: next))
  }
  let first = latencies.prefix(3).max() ?? 0
  if let index = latencies.firstIndex(of: first) { latencies.remove(at: index) }
  print("held-key-first", first)
  print("held-key-worst", latencies.max() ?? 0)
}

/// A slider that is dragged over the clip in a second, and then rests.
func scrub() throws {
  let player = try open()
  defer { player.close() }
  var shown: Set<Int> = []
  var pictures = 0
  let start = clock.now
  while milliseconds(since: start) < 1_000 {
    let target = Int(milliseconds(since: start)) * (frameCount - 1) / 1_000
    player.seek(to: time(ofFrame: target), tolerance: .nearestKeyFrame)
    while player.state == .seeking, milliseconds(since: start) < 1_000 { pause() }
    if let frame = current(player) {
      pictures += 1
      shown.insert(frame.index)
    }
    sleep(milliseconds: 1000 / 60)
  }
  print("scrub-pictures-a-second", pictures)
  let target = frameCount * 2 / 3 + 11
  try measure("scrub-rest", player, wanted: target) { player.seek(to: time(ofFrame: target)) }
}

/// Reverse playback from the end on, with the decoder cold.
func reverse() throws {
  let player = try open()
  defer { player.close() }
  let start = clock.now
  player.seek(to: time(ofFrame: frameCount))
  try player.setRate(-1)
  var shown: Set<Int> = []
  var (began, refresh, most) = (MediaTime?.none, clock.now.value, 0)
  while began.map({ milliseconds(since: $0) < 1_500 }) ?? true {
    let now = nextRefresh(after: &refresh)
    most = max(most, player.decodedFrameBytes)
    guard let frame = player.frame(at: now), frame.isCurrent else { continue }
    let painted = try number(frame)
    guard painted == frame.index else {
      throw WrongFrame(measure: "reverse", wanted: frame.index, shown: painted)
    }
    shown.insert(painted)
    // Playback is ready when it moves.
    if began == nil, shown.count > 1 {
      began = clock.now
      print("reverse-ready", milliseconds(since: start))
      shown = [painted]
    }
  }
  print("reverse-shown-a-second", Double(shown.count) / 1.5)
  print("reverse-memory-mb", Double(most) / 1e6)
}

/// A loop of half a second.
func loop() throws {
  let player = try open()
  defer { player.close() }
  let range = try TimeRange(start: time(ofFrame: 480), duration: MediaTime(1, over: 2))
  player.seek(to: range.start)
  try player.setLoop(range)
  rest(player)
  let length = Int((range.duration * 240).doubleValue)
  var (wraps, last, worst, refresh) = ([Double](), Rational.zero, 0, clock.now.value)
  // A screen also refreshes in a pause. The player decodes for the times of its refreshes.
  for _ in 0..<4 { _ = player.frame(at: nextRefresh(after: &refresh)) }
  try player.setRate(1)
  while wraps.count < 6 {
    let now = nextRefresh(after: &refresh)
    let position = player.time(at: now).composition
    if position < last {
      // The instant at which the loop began again.
      wraps.append((now.seconds - (position - range.start.seconds)).doubleValue)
    }
    last = position
    if let frame = player.frame(at: now) {
      let wanted = Int(((position * 240).doubleValue).rounded(.down))
      // The distance along the loop, whose first frame follows its last one.
      let distance = abs(try number(frame) - wanted)
      worst = max(worst, min(distance, length - distance))
    }
  }
  for (first, next) in zip(wraps, wraps.dropFirst()) {
    // A late refresh may miss a repetition.
    let count = ((next - first) * 2).rounded()
    print("loop-period", (next - first) / max(1, count) * 1_000)
  }
  print("loop-frame-error", worst)
}

func speedChanges(_ algorithm: AudioTimePitchAlgorithm) throws {
  let sink = MemoryAudioSink(clock: clock)
  var settings = PlayerSettings()
  settings.audioSink = sink
  settings.algorithm = algorithm
  let player = try Player(asset, settings: settings)
  defer { player.close() }
  guard player.audioFormat != nil else { return }
  try player.setRate(1)
  for round in 0..<rounds * 4 {
    sleep(milliseconds: 150)
    let rate: Rational = round.isMultiple(of: 2) ? Rational(1, over: 2) : 1
    let heard = sink.timing?.sample ?? .zero
    let written = sink.samples.first?.count ?? 0
    try player.setRate(rate)
    let start = clock.now
    while sink.samples.first?.count ?? 0 <= written {}
    // The samples before the change, or the time of rendering if that is longer.
    let waiting = (Rational(Int64(written)) - heard).doubleValue / 48
    print("speed-change-\(algorithm.rawValue)", max(waiting, milliseconds(since: start)))
  }
}

for round in 0..<rounds {
  try seeksAndSteps(round)
  try heldKey()
  try scrub()
  try reverse()
  try loop()
}
for algorithm in AudioTimePitchAlgorithm.allCases where algorithm != .mute {
  try speedChanges(algorithm)
}
