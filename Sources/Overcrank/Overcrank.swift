// SPDX-License-Identifier: Apache-2.0

// One import for everything that the pipeline's rooms offer.
@_exported public import Assets
@_exported public import Capture
@_exported public import Editing
@_exported public import Export
@_exported public import FormatDiscovery
@_exported public import MediaTiming
@_exported public import Recording
@_exported public import Retiming
