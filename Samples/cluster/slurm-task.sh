#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The task of one clip in the array of slurm.sh.
#
#   slurm-task.sh SCRIPTS LIST DIRECTORY [OPTION...]
here=$1 list=$2 directory=$3
shift 3
clip=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$list")
exec "$here/job.sh" "$directory/reports" "$clip" "$directory/{name}.mov" "$@"
