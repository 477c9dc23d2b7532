#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the screenshots of the documentation, without a screen: a project with three speeds in a
# window, and two clips side by side, both shortly after the ball has touched the ground.
#
#   Samples/window-screenshots.sh DIRECTORY     SLOWMO: the command; default: that on the PATH
set -euo pipefail
slowmo=${SLOWMO:-slowmo}
[ $# -eq 1 ] || { sed -n '3,6s/^# \{0,1\}//p' "$0" >&2; exit 64; }
mkdir -p "$1"
target=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export SDL_VIDEODRIVER=dummy

# record NAME OPTIONS: four seconds of a ball.
record() { "$slowmo" record "synthetic:$2&pace=max" -o "$1" -t 4 --progress none >/dev/null; }
# press FILE OPTION...: keys of the standard input, pressed in the window of a file.
press() { cat >keys.txt && "$slowmo" play "$@" --window --script keys.txt --audio none >/dev/null; }

record ball.mov '960x540@240?height=1.2'
"$slowmo" retime ball.mov -o play-window.otio --range 0.8..1.2 --speed 1/8 --range 2..2.5 --speed 2 \
  >/dev/null
# At 2 s of the project the source is at 0.95 s. The ball touches the ground at 1 s. Each key waits
# until the one before it is done.
press play-window.otio <<KEYS
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
8 ctrl+s
KEYS
mv play-window-shot0001.png "$target/play-window.png"

record first.mov '560x420@240?height=1.2'
record second.mov '560x420@240?height=0.7&period=0.75'
press first.mov --beside second.mov --origin 1 --beside-origin 0.75 <<KEYS
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
8 ctrl+s
KEYS
mv first-shot0001.png "$target/play-beside.png"
ls -l "$target/play-window.png" "$target/play-beside.png"
