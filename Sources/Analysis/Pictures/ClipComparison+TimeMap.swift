// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankExport
import OvercrankMediaCore
import OvercrankMovieFormat

extension ClipComparison {
  /// The time map of each clip in a comparison; a clip of unknown time has an empty part.
  func timeMaps(_ plan: Plan) -> [TimeMap] {
    clips.enumerated().map { number, clip in
      TimeMap(
        showing: plan.frames.map { $0[number] }, of: clip.clock?.map ?? TimeMap(),
        timeScale: speed.fraction)
    }
  }

  /// The boxes of the clips with their maps; blended clips have no box of their own.
  func timeMapEntries(_ maps: [TimeMap], _ plan: Plan) -> [TimeMapBox.Entry] {
    zip(maps, plan.boxes).map { map, box in
      TimeMapBox.Entry(
        pane: layout == .side
          ? TimeMapBox.Pane(x: box.x, y: box.y, width: box.width, height: box.height) : nil,
        code: map.code)
    }
  }
}

extension TimeMap {
  /// Makes the map of a movie that shows frames of another at one speed in real time.
  fileprivate init(showing indices: [Int], of source: TimeMap, timeScale: Rational) {
    self.init()
    var last: Int?
    var current: Recording??
    for index in indices {
      let recording = source.recording(ofFrame: index)
      if current != .some(recording) {
        beginSegment(
          recording: recording.map { self.index(of: $0) }, timeScale: timeScale,
          isContinued: false)
        current = .some(recording)
      }
      var frame = recording == nil ? Frame(index: 0, ticks: 0) : source.frames[index]
      if last == index { frame.content = .repeated }
      if last != index, frame.content == .repeated { frame.content = .genuine }
      append(frame)
      last = index
    }
  }
}
