// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The user of this process and the groups that decide which devices it may open.
package struct UserAccount: Hashable, Sendable {
  /// The login name, or the number of a user without a name.
  package var name: String
  /// Whether the user is root, which may open every device.
  package var isRoot: Bool
  /// The groups of this process.
  package var groups: Set<String>
  /// The groups of the user in the group database.
  ///
  /// A change of the database takes effect when the user logs in again. Until then these groups
  /// differ from ``groups``.
  package var memberships: Set<String>

  package init(name: String, isRoot: Bool, groups: Set<String>, memberships: Set<String>) {
    (self.name, self.isRoot, self.groups, self.memberships) = (name, isRoot, groups, memberships)
  }

  /// The user of this process.
  package static func current() -> UserAccount {
    let user = geteuid()
    let entry = getpwuid(user)?.pointee
    let name = entry.flatMap { $0.pw_name }.map { String(cString: $0) }
    var numbers = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
    let count = getgroups(Int32(numbers.count), &numbers)
    numbers = [getegid()] + numbers.prefix(Int(max(0, count)))
    return UserAccount(
      name: name ?? "\(user)", isRoot: user == 0, groups: Set(numbers.map(groupName)),
      memberships: Set(
        (name.map { databaseGroups(of: $0, entry?.pw_gid ?? getegid()) } ?? []).map(groupName)))
  }

  private static func databaseGroups(of name: String, _ primary: gid_t) -> [gid_t] {
    var count: Int32 = 256
    var numbers = [gid_t](repeating: 0, count: Int(count))
    guard getgrouplist(name, primary, &numbers, &count) >= 0 else { return [] }
    return Array(numbers.prefix(Int(count)))
  }

  private static func groupName(_ number: gid_t) -> String {
    getgrgid(number)?.pointee.gr_name.map { String(cString: $0) } ?? "\(number)"
  }
}
