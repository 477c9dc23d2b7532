#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The task of one clip in the array of slurm.sh.
#
#   slurm-task.sh SCRIPTS LIST REPORTS DIRECTORY [OPTION...]
here=$1 list=$2 reports=$3 directory=$4
shift 4
clip=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$list")
exec "$here/job.sh" "$reports" "$clip" "$directory/{name}.mov" "$@"
