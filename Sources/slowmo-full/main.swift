// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankFonts
import OvercrankHEIF
import SlowmoCommands

var components = OptionalComponents()
components.playbackWindows = PlayerWindows()
components.photoEncoders = [HEICEncoder()]
components.previewWindows = PreviewWindows()
components.recognition = CodeRecognition()
components.burnInFont = { (name) throws(MediaError) in try BurnInFont(named: name) }
SlowmoProgram.main(with: components)
