// SPDX-License-Identifier: Apache-2.0

import Overcrank

// Measures a player on one clip: steps back, exact seeks, and changes of speed.
//
//   PlaybackTiming CLIP ROUNDS     prints lines of a name and its milliseconds
//
// A step or a seek ends when the player has the frame; it is asked for in a loop. A change of speed
// is measured in samples: from the sample that is heard at the command to the first one at the new
// speed, plus the time in which that one is rendered.

let clock = MonotonicHostClock()

func milliseconds(since start: MediaTime) -> Double { (clock.now - start).doubleValue * 1_000 }

func ready(_ player: Player) -> Bool {
  player.state != .seeking && player.frame(at: clock.now)?.isCurrent == true
}

/// Waits until the frame of a command is decoded, and prints the time.
func measure(_ name: String, _ player: Player, _ command: () -> Void) {
  let start = clock.now
  command()
  while !ready(player) {}
  print(name, milliseconds(since: start))
}

/// Waits for the frames that are decoded in advance.
func rest(_ player: Player) {
  var last = -1
  while last != player.decodedFrameBytes {
    last = player.decodedFrameBytes
    clock.sleep(until: MediaTime(nanoseconds: clock.now.value + 400_000_000))
  }
}

let asset = try Asset(path: CommandLine.arguments[1])
let rounds = Int(CommandLine.arguments[2]) ?? 5
let frames = asset.videoTrack?.frameCount ?? 0
for round in 0..<rounds {
  let player = try Player(asset)
  while !ready(player) {}
  let middle = MediaTime(Int64(frames) * Int64(3 + round) / Int64(rounds + 6), over: 240)
  measure("exact-seek", player) { player.seek(to: middle) }
  measure("step-back-cold", player) { player.step(by: -40) }
  rest(player)
  for _ in 0..<8 { measure("step-back", player) { player.step(by: -1) } }
  let start = clock.now
  try player.setRate(-1)
  var shown: Set<Int> = []
  while milliseconds(since: start) < 1_000 {
    if let frame = player.frame(at: clock.now), frame.isCurrent { shown.insert(frame.index) }
    clock.sleep(until: MediaTime(nanoseconds: clock.now.value + 16_666_667))
  }
  print("reverse-shown-a-second", shown.count)
  print("memory-mb", Double(player.decodedFrameBytes) / 1e6)
  player.close()
}

for algorithm in AudioTimePitchAlgorithm.allCases where algorithm != .mute {
  let sink = MemoryAudioSink(clock: clock)
  var settings = PlayerSettings()
  settings.audioSink = sink
  settings.algorithm = algorithm
  let player = try Player(asset, settings: settings)
  guard player.audioFormat != nil else { continue }
  try player.setRate(1)
  for round in 0..<rounds * 4 {
    clock.sleep(until: MediaTime(nanoseconds: clock.now.value + 150_000_000))
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
  player.close()
}
