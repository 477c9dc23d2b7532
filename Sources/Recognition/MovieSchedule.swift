// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// Decides which frames of a movie are searched, and how.
struct MovieSchedule {
  /// The search of a frame.
  struct Plan {
    /// The search; nil for none.
    var search: FrameSearch?
    /// Whether the frame counts as searched for new objects of each kind.
    var isSearched: Bool
  }

  /// The greatest number of frames from one search of a whole frame for new faces to the next, without
  /// a limit on passes.
  ///
  /// Between these frames, faces are followed in both directions.
  static let faceInterval = MovieTracker.window
  /// The greatest time from one such search to the next, in seconds.
  static let faceTime = Rational(1, over: 20)
  /// The greatest number of consecutive frames in which only the changed part is searched for codes.
  private static let partInterval = MovieTracker.window
  /// The repeating sequence of searches for faces.
  static let facePasses: [[FaceReader.Pass]] = [
    [.init(effort: .fine), .init(effort: .quick, degrees: FaceReader.tilt)],
    [.init(effort: .fine), .init(effort: .quick, degrees: -FaceReader.tilt)],
  ]
  /// The searches for faces in the part of a frame that has suddenly changed.
  static let changedPasses: [FaceReader.Pass] = [
    .init(effort: .fine), .init(effort: .quick, degrees: FaceReader.tilt),
    .init(effort: .quick, degrees: -FaceReader.tilt),
  ]

  private var framesSinceWhole = 0
  private let findsCodes: Bool
  private let findsFaces: Bool
  private let rate: FrameRate?
  private var lastPass: MediaTime?
  private var brightness = BrightnessGrid()
  private var framesSinceFaces = 0
  private var lastFaceTime: MediaTime?
  private var facePassCount = 0
  /// Whether the codes and the faces of the current image are known, although it may be repeated.
  private var (hasCodes, hasFaces) = (false, false)

  init(findsCodes: Bool, findsFaces: Bool, rate: FrameRate?) {
    (self.findsCodes, self.findsFaces, self.rate) = (findsCodes, findsFaces, rate)
  }

  /// Plans the search of the next frame.
  mutating func plan(for frame: DecodedFrame) -> Plan {
    let isDue = isDue(at: frame.time)
    let hadCodes = hasCodes
    if !frame.isRepeated { (hasCodes, hasFaces) = (false, false) }
    let codeArea = isDue && findsCodes && !hasCodes ? codeArea(of: frame, hadCodes) : nil
    let faceArea = findsFaces ? faceArea(of: frame, isDue) : nil
    var facePasses = Self.changedPasses
    if faceArea == frame.luma.area {
      facePasses = Self.facePasses[facePassCount % Self.facePasses.count]
      facePassCount += 1
      (framesSinceFaces, lastFaceTime) = (0, frame.time)
      hasFaces = true
    }
    hasCodes = hasCodes || codeArea != nil
    let search = FrameSearch(
      codeArea: codeArea, faceArea: faceArea, facePasses: facePasses)
    return Plan(
      search: codeArea != nil || faceArea != nil ? search : nil,
      isSearched: isDue && (hasCodes || !findsCodes) && (hasFaces || !findsFaces))
  }

  /// The part of a frame in which codes are searched for: the changed part with a wide margin, if the
  /// codes of the frame before are known and the part is small; else the whole frame.
  private mutating func codeArea(of frame: DecodedFrame, _ hadCodes: Bool) -> PixelRect {
    framesSinceWhole += 1
    if let changed = frame.changedArea, hadCodes, framesSinceWhole < Self.partInterval {
      let luma = frame.luma
      // The code of which a part has changed reaches beyond this part.
      let margin = max(96, luma.width / 8)
      let area = changed.expanded(by: margin).clamped(width: luma.width, height: luma.height)
      if 2 * area.width * area.height <= luma.width * luma.height { return area }
    }
    framesSinceWhole = 0
    return frame.luma.area
  }

  private mutating func isDue(at time: MediaTime) -> Bool {
    guard let rate else { return true }
    if let lastPass, time.seconds - lastPass.seconds < rate.frameDuration.seconds { return false }
    lastPass = time
    return true
  }

  /// The part of a frame in which new faces are searched for.
  ///
  /// If the rate is limited, this is the whole of each frame that is due. Else it is the whole frame
  /// at an interval, and what has suddenly changed in the frames between.
  private mutating func faceArea(of frame: DecodedFrame, _ isDue: Bool) -> PixelRect? {
    let (whole, before) = (frame.luma.area, brightness)
    guard rate == nil else { return isDue && !hasFaces ? whole : nil }
    brightness = BrightnessGrid(frame.luma)
    framesSinceFaces += 1
    guard !hasFaces else { return nil }
    guard framesSinceFaces < Self.faceInterval, let lastFaceTime,
      frame.time.seconds - lastFaceTime.seconds < Self.faceTime
    else { return whole }
    guard let changed = brightness.area(changedSince: before, in: whole) else { return nil }
    return 2 * changed.width * changed.height > whole.width * whole.height ? whole : changed
  }
}

/// The brightness of an image in a grid of cells.
///
/// If an object moves, or the camera turns, by less than a cell from frame to frame, then the
/// brightness of a cell is between those that the cells around it had before.
private struct BrightnessGrid {
  private static let (columns, rows) = (32, 18)
  /// The number of samples of a cell, in each direction.
  ///
  /// The mean of 64 samples hides noise.
  private static let samples = 8
  /// How far the brightness of a cell, of 255, is beyond those of the cells around it in the frame
  /// before if it shows something else.
  private static let suddenChange = 12

  private var cells: [UInt8] = []

  init() {}

  init(_ image: LumaImage) {
    let (columns, rows, samples) = (Self.columns, Self.rows, Self.samples)
    let across = (0..<columns * samples).map {
      $0 * image.width / (columns * samples) * image.bytesPerPixel
    }
    cells = [UInt8](unsafeUninitializedCapacity: rows * columns) { cells, count in
      for row in 0..<rows {
        for column in 0..<columns {
          var sum = 0
          for y in row * samples..<(row + 1) * samples {
            let line = image.base + y * image.height / (rows * samples) * image.bytesPerRow
            for x in column * samples..<(column + 1) * samples { sum += Int(line[across[x]]) }
          }
          cells[row * columns + column] = UInt8(sum / (samples * samples))
        }
      }
      count = rows * columns
    }
  }

  /// The part of an image that has suddenly changed, with a margin for a face of which one cell has
  /// changed; nil if nothing has.
  func area(changedSince before: BrightnessGrid, in whole: PixelRect) -> PixelRect? {
    let changed = cells.indices.filter { !before.explains(cells[$0], at: $0) }
    let (columns, rows) = (changed.map { $0 % Self.columns }, changed.map { $0 / Self.columns })
    guard let left = columns.min(), let right = columns.max(), let top = rows.min(),
      let bottom = rows.max()
    else { return nil }
    let margin = max(whole.width, whole.height) / 8
    return PixelRect(
      x: left * whole.width / Self.columns..<(right + 1) * whole.width / Self.columns,
      y: top * whole.height / Self.rows..<(bottom + 1) * whole.height / Self.rows
    ).expanded(by: margin).clamped(width: whole.width, height: whole.height)
  }

  /// Whether the brightness of a cell can come from motion since this frame.
  private func explains(_ brightness: UInt8, at index: Int) -> Bool {
    let (column, row) = (index % Self.columns, index / Self.columns)
    var (least, most) = (Int.max, Int.min)
    for y in max(0, row - 1)...min(Self.rows - 1, row + 1) {
      for x in max(0, column - 1)...min(Self.columns - 1, column + 1) {
        let cell = Int(cells[y * Self.columns + x])
        (least, most) = (min(least, cell), max(most, cell))
      }
    }
    return (least - Self.suddenChange...most + Self.suddenChange).contains(Int(brightness))
  }
}
