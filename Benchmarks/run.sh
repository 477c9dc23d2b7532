#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benchmarks in turn, and writes one report: report.md with a table of the figures beside
# those of the peers, then what each benchmark printed; report.json with the same figures and the
# machine; and the heat map of lost frames. Capture, Passthrough and Stop are medians of
# five rounds, with their range; the others come from fewer or shorter runs than their default.
#
#   Benchmarks/run.sh [DIRECTORY] [BENCHMARK...]     default: benchmark-report, and all of them
#
# Benchmarks that are named replace what the report in the directory has of them.
#
# Takes about 42 minutes on two cores after the builds; leave the machine alone meanwhile. Exits
# with 1 if a benchmark failed or missed a goal. Not included are Onsets, which needs clips, and
# Instructions, which needs another commit.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/Support/prepare.sh"
install_packages "${build_packages[@]}" python3 >&2
exec python3 Benchmarks/Support/report.py "$@"
