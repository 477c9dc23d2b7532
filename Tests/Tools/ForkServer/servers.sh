# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced, because fork servers end with the process that started them.

# start_fork_servers BUILD DIRECTORY PROGRAM...: from here on, `run` of TestSupport starts these programs
# faster. BUILD is the directory of build.sh; DIRECTORY is made for the sockets.
start_fork_servers() {
  local build=$1 program
  export FORK_SERVERS=$2
  mkdir -p "$FORK_SERVERS"
  ln -sfn "$build/client" "$FORK_SERVERS/client"
  for program in "${@:3}"; do
    FORK_SERVER=$FORK_SERVERS/${program##*/} LD_PRELOAD=$build/fork-server.so "$program" </dev/null &
  done
}
