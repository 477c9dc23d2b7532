// SPDX-License-Identifier: Apache-2.0

// Importing this module imports all modules of the pipeline.
@_exported public import OvercrankAnalysis
@_exported public import OvercrankAssets
@_exported public import OvercrankCameraControls
@_exported public import OvercrankCapture
@_exported public import OvercrankDeviceDiscovery
@_exported public import OvercrankEditing
@_exported public import OvercrankExport
@_exported public import OvercrankFrameAccounting
@_exported public import OvercrankMediaCore
@_exported public import OvercrankPhotos
@_exported public import OvercrankPlayback
@_exported public import OvercrankPreview
@_exported public import OvercrankRaster
@_exported public import OvercrankRecording
@_exported public import OvercrankRetiming
