# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Reads the arguments of parallel.sh and slurm.sh, which source it: CLIP... -- OPTION...
# Sets clips and reports, and leaves the options in "$@".
clips=()
while [[ $# -gt 0 && $1 != -- ]]; do
  clips+=("$1")
  shift
done
shift || true
reports=$directory/reports/$(date +%Y%m%d-%H%M%S)-$$
mkdir -p "$reports"
