// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

extension MovieWriter {
  /// Adds the boxes and tags of the index that libavformat does not write.
  func completeHead() throws(LibAVError) {
    // An edit list must start at the frame that is shown first. libavformat starts it at the frame
    // that is decoded first. If these two frames differ, the track's edit list is rewritten.
    let led = tracks.indices.filter { number in
      guard let first = tracks[number].first?.pts, let shown = tracks[number].shown else {
        return false
      }
      return first > 0 && shown.lowerBound < first
    }
    guard captureRate != nil || fullRangeTrack != nil || !led.isEmpty else { return }
    let path = path
    let file = try LibAVError.converting { () throws(SystemError) in try MovieBoxes(opening: path) }
    let boxes = file.boxes()
    guard let position = boxes.firstIndex(where: { $0.type == BoxType.movie }),
      let size = Int(exactly: boxes[position].byteCount)
    else { return }
    let movie = boxes[position]
    var bytes = file.file.read(size, at: movie.start)
    if let captureRate { MovieTags.write(captureRate: captureRate, into: &bytes) }
    for number in led { try writeEditList(of: number, into: &bytes) }
    if let fullRangeTrack {
      let failure = LibAVError("write the color range into", path, code: CFFmpeg_EINVAL)
      guard
        ColorBox.write(into: &bytes, track: fullRangeTrack.index, .init(fullRangeTrack.parameters))
      else { throw failure }
      // The `colr` box enlarges the index. The `free` box that was reserved after the index becomes
      // smaller by the same number of bytes, so that the media data does not move.
      if position + 1 < boxes.count {
        let rest = Int(boxes[position + 1].byteCount) - (bytes.count - size)
        guard boxes[position + 1].type == BoxType.free, let count = UInt32(exactly: rest), rest >= 8
        else { throw failure }
        var free = BoxBytes()
        free.append(count)
        free.append(BoxType.free)
        bytes += free.bytes
      }
    }
    do throws(SystemError) { try file.file.write(bytes, at: movie.start) } catch {
      throw LibAVError(error)
    }
  }

  private func writeEditList(of number: Int, into bytes: inout [UInt8]) throws(LibAVError) {
    guard let first = tracks[number].first, let shown = tracks[number].shown else { return }
    let start = max(0, shown.lowerBound)
    func movieTicks(_ ticks: Int64) -> Int64 {
      av_rescale(ticks, Int64(settings.movieTimescale), Int64(tracks[number].timeBase.den))
    }
    let isWritten = EditListBox.write(
      into: &bytes, track: number, delay: movieTicks(start), mediaTime: start &- first.dts,
      duration: movieTicks(shown.upperBound &- start),
      mediaDuration: shown.upperBound &- start)
    guard isWritten else {
      throw LibAVError("write the edit list of", path, code: CFFmpeg_EINVAL)
    }
  }
}
