// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

extension SeededGenerator {
  /// A random number from 0 up to `bound` - 1.
  ///
  /// It is a little uneven, and fast in debug builds.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[below(elements.count)]
  }
}

/// Operations that are tested with random inputs, together at least a million cases.
enum Operation: CaseIterable {
  case timeSum, timeDifference, timeProduct, timeComparison, timeHash, timeConversion
  case rationalSum, rationalDifference, rationalProduct, rationalQuotient
  case rationalComparison, rationalRounding
  case range, anyMapping, boundedMapping, frameRate, speed

  /// The number of random inputs; fewer if the model is slow.
  var inputCount: Int {
    switch self {
    case .timeComparison: 150_000
    case .timeSum, .timeDifference: 100_000
    case .rationalComparison: 70_000
    case .timeProduct, .timeHash: 60_000
    case .timeConversion, .range: 40_000
    case .rationalSum, .rationalDifference, .rationalProduct, .rationalQuotient: 30_000
    case .frameRate, .speed: 25_000
    case .anyMapping, .boundedMapping: 15_000
    case .rationalRounding: 10_000
    }
  }

  /// The number of properties checked for each input, such as six roundings or two directions.
  var claimsPerInput: Int {
    switch self {
    case .timeConversion, .rationalRounding: 6
    case .anyMapping, .boundedMapping: 2
    default: 1
    }
  }
}

/// Checks a property for random inputs, and reports the first input that fails and how to repeat
/// it.
///
/// The property returns a description of the error, or nil. The seed is fixed, so that a run can be
/// repeated. `TIMING_SEED=n swift test` tries other inputs.
func forAll(
  _ operation: Operation, sourceLocation: SourceLocation = #_sourceLocation,
  _ property: (inout SeededGenerator) throws -> String?
) {
  forAll(operation.inputCount, sourceLocation: sourceLocation, property)
}

func forAll(
  _ count: Int, sourceLocation: SourceLocation = #_sourceLocation,
  _ property: (inout SeededGenerator) throws -> String?
) {
  let seed = getenv("TIMING_SEED").flatMap { UInt64(String(cString: $0)) } ?? 240
  for index in 0..<count {
    // Every input has its own seed, so that a failing input can be run alone.
    var random = SeededGenerator(seed: seed &+ UInt64(index) &* 0xD134_2543_DE82_EF95)
    let complaint: String?
    do {
      complaint = try property(&random)
    } catch {
      complaint = "threw \(error)"
    }
    if let complaint {
      Issue.record(
        "case \(index) of TIMING_SEED=\(seed): \(complaint)", sourceLocation: sourceLocation)
      return
    }
  }
}

struct RandomCasesTests {
  @Test func `The random tests of times check a million cases in total`() {
    let total = Operation.allCases.reduce(0) { $0 + $1.inputCount * $1.claimsPerInput }
    #expect(total >= 1_000_000)
  }

  @Test func `The random tests report a claim that fails on one input`() {
    withKnownIssue {
      var tried = 0
      forAll(100) { _ in
        tried += 1
        return tried == 100 ? "wrong" : nil
      }
    }
    withKnownIssue { forAll(1) { _ in throw CancellationError() } }
  }
}
