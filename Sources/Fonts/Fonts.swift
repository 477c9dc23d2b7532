// SPDX-License-Identifier: Apache-2.0

// `BurnInFont(named:)` was declared in this module. The module remains for one version, so that
// programs that import it for this initializer still compile.
@_exported public import OvercrankExport
