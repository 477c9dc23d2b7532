#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Retimes clips on several computers, with GNU parallel over ssh.
#
#   parallel.sh HOSTS DIRECTORY CLIP... -- OPTION...
#   parallel.sh 4/render1,4/render2 slow clips/*.mov -- --speed 1/8 --copy
#
# HOSTS are names of ssh, each with its number of jobs. All computers see the clips and DIRECTORY
# under the same paths, by absolute names or from the present directory. A job whose computer vanishes
# is given to another one. Run it again to make what is left: a finished output is kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
hosts=$1 directory=$2
shift 2
# shellcheck source=Samples/cluster/clips.sh
. "$here/clips.sh"
# A computer that does not answer for ten seconds is gone. Files are named by the job itself.
export PARALLEL_SSH="${PARALLEL_SSH:-ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=2}"
parallel --sshlogin "$hosts" --workdir "$PWD" --env SLOWMO --retries 4 \
  --joblog "$reports/parallel.log" --quote \
  "$here/job.sh" "$reports" {} "$directory/{name}.mov" "$@" ::: "${clips[@]}" || true
python3 "$here/summary.py" "$reports" "${clips[@]}"
