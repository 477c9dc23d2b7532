#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the screenshots of the documentation, without a screen.
#
#   Samples/window-screenshots.sh DIRECTORY           SLOWMO: the command; default: that on the PATH
#   Samples/window-screenshots.sh --check DIRECTORY   fails if an image in the directory is out of date
set -euo pipefail
slowmo=${SLOWMO:-slowmo}
checks=
if [ "${1-}" = --check ]; then
  checks=1
  shift
fi
[ $# -eq 1 ] || { sed -n '3,6s/^# \{0,1\}//p' "$0" >&2; exit 64; }
[ -n "$checks" ] || mkdir -p "$1"
target=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/images"
cd "$work"
export SDL_VIDEODRIVER=dummy

# record NAME OPTIONS: four seconds of a ball.
record() { "$slowmo" record "synthetic:$2&pace=max" -o "$1" -t 4 --progress none >/dev/null; }
# operate FILE OPTION...: the steps of the standard input, in the window of a file.
operate() { cat >steps.txt && "$slowmo" play "$@" --window --script steps.txt --audio none >/dev/null; }

record ball.mov '960x540@240?height=1.2'
"$slowmo" retime ball.mov -o ball.otio --range 0.8..1.2 --speed 1/8 --range 2..2.5 --speed 2 >/dev/null
# At 2 s of the project the source is at 0.95 s. The ball touches the ground at 1 s. Thumbnails are
# decoded in the background, so the steps wait for some frames.
operate ball.otio <<STEPS
0 space
0.1 home
1 right
2 right
3 m
3.5 .
4 .
4.5 .
5 .
5.5 .
wait idle
frames 120
png images/play-window.png
move 0.2,0.3
frames 2
click range start
drag 0.3,0.93 0.45,0.93
wait idle
click range end
move 0.2,0.3
wait idle
frames 100
move 0.2,0.4
frames 2
png images/window-buttons.png
9 ?
frames 2
png images/window-keys.png
STEPS

operate ball.mov --scale '96=1m' <<STEPS
0 space
0.1 home
0.5 right
wait idle
click measure
drag 0.4,0.2 0.4,0.6
drag 0.4,0.6 0.6,0.6
drag 0.65,0.25 0.85,0.25
frames 260
png images/window-measure.png
STEPS

record first.mov '560x420@240?height=1.2'
record second.mov '560x420@240?height=0.7&period=0.75'
operate first.mov --beside second.mov --origin 1 --beside-origin 0.75 <<STEPS
0 space
0.1 home
1 right
2 m
2.5 .
3 .
3.5 .
4 .
4.5 .
5 .
5.5 .
6 .
wait idle
frames 120
png images/play-beside.png
STEPS

cat >steps.txt <<STEPS
frames 30
1 h
move 0.3,0.3
frames 5
1.5 +
frames 5
png images/window-preview.png
STEPS
"$slowmo" preview synthetic:640x480@60 --audio none --script steps.txt >/dev/null

cat >steps.txt <<STEPS
frames 75
move 0.3,0.3
frames 3
png images/window-trigger.png
STEPS
"$slowmo" record synthetic:640x480@60 -o never.mov --pre 1s --trigger key --arm-when-full --preview \
  --audio none --script steps.txt --progress none </dev/null >/dev/null 2>&1 || [ $? = 75 ]

if [ -z "$checks" ]; then
  cp images/*.png "$target/"
  ls -l "$target"/{play,window}-*.png
  exit
fi
# The camera moves on, so its image differs by more pixels than the others.
python3 - "$target" images/*.png <<'END'
import pathlib, subprocess, sys

def pixels(path):
    command = ["ffmpeg", "-v", "error", "-i", path, "-pix_fmt", "gray", "-f", "rawvideo", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout

live = ["window-preview.png", "window-trigger.png"]
failed = False
for path in map(pathlib.Path, sys.argv[2:]):
    known = pathlib.Path(sys.argv[1]) / path.name
    if not known.exists():
        print(f"{known} is missing")
        failed = True
        continue
    new, old = pixels(path), pixels(known)
    part = sum(abs(a - b) > 32 for a, b in zip(new, old)) / len(new)
    if len(new) != len(old) or part > (0.002 if path.name not in live else 0.25):
        print(f"{known} is out of date: {part:.1%} of its pixels differ")
        failed = True
sys.exit(failed)
END
