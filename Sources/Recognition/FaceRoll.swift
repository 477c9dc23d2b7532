// SPDX-License-Identifier: Apache-2.0

/// Measures how far a face is rotated in an image.
///
/// The detector's score for the front of a face is highest if the image is rotated until the face
/// is upright. The result is the mean of the best angle and its two neighbors, weighted by their
/// scores.
enum FaceRoll {
  /// The distance in degrees from one tried angle to the next.
  static let step = 20.0
  /// The greatest angle that is tried, in degrees.
  static let limit = 70.0
  /// The least detector score that counts as a face.
  static let minimumScore = -1.0
  /// An angle whose score is lower than the best score by this much has no weight.
  private static let drop = 1.2

  /// Searches for the roll of a face.
  ///
  /// - Parameters:
  ///   - degrees: The angle at which the search begins.
  ///   - score: Returns the detector's score at an angle; nil if no face is found.
  /// - Returns: The roll in degrees clockwise; nil if no angle shows a face.
  static func estimate(near degrees: Double, _ score: (Double) -> Double?) -> Double? {
    let start = max(step - limit, min(limit - step, degrees))
    // The scores by number of steps from the start angle.
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
