// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The code of the error that a closure throws, or nil if it throws none.
package func code<Result>(_ body: () throws -> Result) -> MediaError.Code? {
  do { _ = try body() } catch { return (error as? MediaError)?.code }
  return nil
}
