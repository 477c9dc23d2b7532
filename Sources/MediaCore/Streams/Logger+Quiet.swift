// SPDX-License-Identifier: Apache-2.0

package import Logging

extension Logger {
  /// A logger that discards everything: the default until a program sets its own.
  package static let quiet = Logger(label: "overcrank") { _ in SwiftLogNoOpLogHandler() }
}
