// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankHEIF
import SlowmoCommands

var components = OptionalComponents()
components.playbackWindows = PlayerWindows()
components.photoEncoders = [HEICEncoder()]
components.previewWindows = PreviewWindows()
components.recognition = CodeRecognition()
SlowmoProgram.main(with: components)
