#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the player beside mpv on three clips at 1280x720 and 240 fps: H.264 with a key frame every
# 250 frames and B-frames, H.264 with one every 60 frames, and MJPEG. Each frame carries its number,
# and a wrong frame of either player fails. Measured are an exact seek, a step back with and without
# decoded frames, a held key, scrubbing, reverse playback, a loop and changes of speed. A seek or a
# step ends when the frame is decoded; mpv reports this with the event playback-restart. The last
# column says whether a goal is met. Takes about four minutes.
#
#   Benchmarks/Playback/run.sh [ROUNDS]     default: 5 rounds
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare PLAYBACK_TIMING PlaybackTiming ffmpeg mpv
make_folder playback-bench
python3 Benchmarks/Playback/playback.py "${1:-5}"
