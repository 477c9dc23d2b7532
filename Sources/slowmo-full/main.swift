// SPDX-License-Identifier: Apache-2.0

import SlowmoCommands

var components = OptionalComponents()
components.playbackWindows = PlayerWindows()
SlowmoProgram.main(with: components)
