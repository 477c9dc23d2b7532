// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The value of `--burn-in`: a list such as `time,frame,speed,mark=1.5,logo=logo.png`.
struct BurnInOption: ExpressibleByArgument {
  private let items: [BurnIn.Item]
  private let mark: TimeExpression?
  private let logo: String?

  init?(argument: String) {
    var items: [BurnIn.Item] = []
    var (mark, logo): (TimeExpression?, String?)
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", maxSplits: 1).map(String.init)
      let value = sides.count == 2 ? sides[1] : nil
      if sides.first == "logo", let value, logo == nil {
        logo = value
      } else if let name = sides.first, let item = BurnIn.Item(rawValue: name),
        !items.contains(item), item == .mark || value == nil
      {
        items.append(item)
        if let value {
          guard let time = try? TimeExpression(parsing: value) else { return nil }
          mark = time
        }
      } else {
        return nil
      }
    }
    (self.items, self.mark, self.logo) = (items, mark, logo)
  }

  /// True if the time of the mark is given, false otherwise.
  var hasMarkTime: Bool { mark != nil }

  /// Returns what is drawn into the frames of an export of this movie.
  ///
  /// Without a time, `mark` is the first mark of the movie.
  func burnIn(_ asset: Asset?) throws(MediaError) -> BurnIn {
    var time: MediaTime?
    if let mark, let asset {
      time = try asset.resolve(mark)
    } else if items.contains(.mark), let asset {
      guard let first = asset.marks.first else {
        throw MediaError(
          .outsideSource, "\(asset.path) has no mark", recovery: "write a time, such as mark=1.5")
      }
      time = first.time
    }
    return BurnIn(items: items, mark: time, logoPath: logo)
  }
}
