#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Retimes clips with arrays of Slurm jobs, one task for each clip.
#
#   slurm.sh DIRECTORY CLIP... -- OPTION...
#   slurm.sh slow clips/*.mov -- --speed 1/8 --copy
#
# All nodes see the clips and DIRECTORY under the same paths. Slurm itself runs the tasks of a lost
# node again. Failed tasks are submitted again, three times at most. SBATCH_* variables add options,
# such as SBATCH_PARTITION.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
directory=$1
shift
# shellcheck source=Samples/cluster/clips.sh
. "$here/clips.sh"
for round in 1 2 3; do
  list=$reports/round-$round
  python3 "$here/summary.py" "$reports" --left "${clips[@]}" >"$list"
  count=$(wc -l <"$list")
  [[ $count -gt 0 ]] || break
  sbatch --wait --requeue --array="1-$count" --cpus-per-task=1 --output="$list.%a.log" \
    --open-mode=append --job-name=slowmo "$here/slurm-task.sh" "$here" "$list" "$reports" "$directory" "$@" ||
    echo "round $round: some tasks failed" >&2
done
python3 "$here/summary.py" "$reports" "${clips[@]}"
