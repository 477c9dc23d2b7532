#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One job of a batch on a cluster: retimes one clip, and keeps the report of this attempt. A clip
# that is finished is not exported again, so a job may run twice.
#
#   job.sh REPORTS CLIP OUTPUT [OPTION...]     options of `slowmo retime`; OUTPUT is a template
#
# SLOWMO is the command; default: slowmo.
set -u
reports=$1 clip=$2 output=$3
shift 3
name=${clip##*/}
attempt=$(mktemp "$reports/${name%.*}.XXXXXXXX") || exit 73
exec "${SLOWMO:-slowmo}" retime "$clip" -o "$output" "$@" --json --progress none >"$attempt"
