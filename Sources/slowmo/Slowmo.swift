// SPDX-License-Identifier: Apache-2.0
@main struct Slowmo { static func main() {} }
