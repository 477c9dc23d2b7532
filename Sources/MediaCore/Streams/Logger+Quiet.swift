// SPDX-License-Identifier: Apache-2.0

package import Logging

extension Logger {
  /// A logger that nobody hears: what a program has until it sets its own.
  package static let quiet = Logger(label: "overcrank") { _ in SwiftLogNoOpLogHandler() }
}
