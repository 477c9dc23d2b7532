// SPDX-License-Identifier: Apache-2.0

import SlowmoCommands

var components = OptionalComponents()
components.playbackWindows = PlayerWindows()
components.previewWindows = PreviewWindows()
SlowmoProgram.main(with: components)
