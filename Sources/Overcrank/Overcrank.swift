// SPDX-License-Identifier: Apache-2.0

// One import for everything that the modules of the pipeline offer.
@_exported public import OvercrankAssets
@_exported public import OvercrankCapture
@_exported public import OvercrankDeviceDiscovery
@_exported public import OvercrankEditing
@_exported public import OvercrankExport
@_exported public import OvercrankFrameAccounting
@_exported public import OvercrankMediaCore
@_exported public import OvercrankRecording
@_exported public import OvercrankRetiming
