// SPDX-License-Identifier: Apache-2.0

/// Measures how far a face is rotated in an image.
///
/// The detector's answer to the front of a face is highest if the image is turned until the face is
/// upright. The roll is the mean of the angles around that one, weighted by the answers.
enum FaceRoll {
  /// The distance of the angles that are tried, in degrees.
  static let step = 20.0
  /// The greatest angle that is tried.
  static let limit = 70.0
  /// The least answer that belongs to a face.
  static let minimumScore = -1.0
  /// The difference from the best answer at which an angle no longer counts.
  private static let drop = 1.2

  /// Searches for the roll of a face.
  ///
  /// - Parameters:
  ///   - degrees: The angle with which the search begins.
  ///   - score: Returns the detector's answer at an angle, or nil without one.
  /// - Returns: The roll in degrees, clockwise, or nil if no angle shows a face.
  static func estimate(near degrees: Double, _ score: (Double) -> Double?) -> Double? {
    let start = max(step - limit, min(limit - step, degrees))
    // By the number of steps from the start.
    var scores: [Int: Double] = [:]
    var best = 0
    while true {
      for number in best - 1...best + 1 where scores[number] == nil {
        let angle = start + step * Double(number)
        scores[number] = (abs(angle) <= limit ? score(angle) : nil) ?? -.infinity
      }
      guard let top = scores.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }),
        top.value >= minimumScore
      else { return nil }
      if top.key == best { break }
      best = top.key
    }
    let weights = (best - 1...best + 1).map {
      max(0, (scores[$0] ?? -.infinity) - (scores[best] ?? 0) + drop)
    }
    let mean = (weights[2] - weights[0]) / (weights[0] + weights[1] + weights[2])
    return start + step * (Double(best) + mean)
  }
}
