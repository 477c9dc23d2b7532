#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the emulated machine itself: the environment of a test in the guest, and the status reports
# of run.sh. Boots seven machines, four of them in pairs.

set -uo pipefail

# A boot may take long on a busy machine.
export LAB_TIMEOUT=${LAB_TIMEOUT:-14400}

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(cd "$lab/../../.." && pwd -P)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed=0
failed=0
count() { # count LINE: an "ok" or a "not ok" line
  echo "$1"
  case $1 in
    'ok '*) passed=$((passed + 1)) ;;
    *) failed=$((failed + 1)) ;;
  esac
}

check() { # check NAME COMMAND...
  local name=$1
  shift
  if "$@"; then count "ok $name"; else count "not ok $name"; fi
}

# Runs the lab with its own writable directory; leaves NAME.stdout, NAME.stderr and NAME.status.
run() { # run NAME COMMAND
  mkdir -p "$scratch/$1.out"
  LAB_OUT=$scratch/$1.out "$lab/run.sh" "$2" >"$scratch/$1.stdout" 2>"$scratch/$1.stderr"
  echo $? >"$scratch/$1.status"
}

status_is() { # status_is NAME STATUS
  test "$(cat "$scratch/$1.status")" = "$2"
}

says() { # says FILE PATTERN
  grep -qE -- "$2" "$scratch/$1"
}

# --- Missing packages are reported before a boot -------------------------------------------------

mkdir "$scratch/bin"
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/dpkg-query"
chmod +x "$scratch/bin/dpkg-query"
(PATH=$scratch/bin:$PATH run missing true)
check "missing packages: status 125" status_is missing 125
check "missing packages: named in one line" test "$(cat "$scratch/missing.stderr")" = \
  "lab: missing packages, install them first: apt-get install $(sed '/^#/d' "$lab/packages" | paste -sd' ')"

# --- The guest environment -----------------------------------------------------------------------

run guest "bash Tests/Tools/Lab/selftest-guest.sh '$checkout'"
while read -r line; do
  case $line in
    'ok '* | 'not ok '*) count "$line" ;;
  esac
done <"$scratch/guest.stdout"
check "the checks in the guest ran to their end" says guest.stdout '^reached the end$'
check "status 0 comes back" status_is guest 0
check "what the guest wrote is on the host" \
  cmp -s "$checkout/Package.swift" "$scratch/guest.out/from-the-guest"
grep -E '^lab:' "$scratch/guest.stderr"

# --- Two at once ---------------------------------------------------------------------------------

# The first run prints every byte value, more than a pipe holds, and no final newline. The second
# leaves a background process that keeps the output open.
# shellcheck disable=SC2016 # LAB_OUT is the guest's
run bytes 'head -c 300000 /dev/zero | tr "\0" x; printf "\\0\\377\\nend"; printf error >&2
  echo bytes >"$LAB_OUT/who"; exit 7' &
# shellcheck disable=SC2016
run other 'echo other; echo other >"$LAB_OUT/who"; sleep 1000 & exit 42' &
wait
check "status 7 comes back" status_is bytes 7
check "standard output comes back byte by byte" cmp -s "$scratch/bytes.stdout" \
  <(head -c 300000 /dev/zero | tr '\0' x && printf '\0\377\nend')
check "standard error comes back, and nothing else on it" \
  test "$(cat "$scratch/bytes.stderr")" = error
check "another run at the same time has its own status" status_is other 42
check "... its own output" test "$(cat "$scratch/other.stdout")" = other
check "... its own writable directory" \
  test "$(cat "$scratch/bytes.out/who" "$scratch/other.out/who" | paste -sd,)" = bytes,other

# --- The clock -----------------------------------------------------------------------------------

# The same work is timed twice in the guest. During the second run, the whole emulator is stopped
# for five seconds of host time.
# shellcheck disable=SC2016
run clock '
  work() { local i; for ((i = 0; i < 50000; i++)); do :; done; }
  timed() { local start=${EPOCHREALTIME/./}; work; echo $((${EPOCHREALTIME/./} - start)); }
  first=$(timed); echo 1 >"$LAB_OUT/begun"; second=$(timed); echo "$first $second"' &
runner=$!
while kill -0 $runner 2>/dev/null && ! [[ -e $scratch/clock.out/begun ]]; do sleep 0.05; done
machine=$(pgrep -f "^qemu-system.*path=$scratch/clock[.]out") && kill -STOP "$machine" &&
  sleep 5 && kill -CONT "$machine"
wait
read -r first second <"$scratch/clock.stdout"
echo "clock: the work took $first us, and $second us while the host was busy elsewhere"
check "the guest's clock ignores other load of the host" \
  test $((second - first)) -lt $((first / 10)) -a $((first - second)) -lt $((first / 10))
# A read from the host takes an arbitrary time, even to find the program sleep. The shell therefore
# waits on a pipe in the guest's memory.
# shellcheck disable=SC2016
run asleep 'mkfifo /tmp/never; exec 3<>/tmp/never; start=$EPOCHSECONDS
  read -rt 600 -u 3; echo $((EPOCHSECONDS - start))'
check "ten minutes of sleep are ten minutes in the guest" says asleep.stdout '^60[01]$'

# --- Failures are reported -----------------------------------------------------------------------

LAB_TIMEOUT=20 run late 'while :; do :; done' &
run panic 'echo before; echo c >/proc/sysrq-trigger; sleep 1000' &
wait
check "out of time: status 124" status_is late 124
check "out of time: said" says late.stderr '^lab: .*did not finish within 20 s'
# The brackets keep grep from matching its own command line.
check "out of time: the machine is gone" \
  test -z "$(grep -ls "path=$scratch/late[.]out" /proc/[0-9]*/cmdline)"
check "panic: status 125" status_is panic 125
check "panic: said" says panic.stderr '^lab: the machine ended before .*Kernel panic'
check "panic: the output until then comes back" test "$(cat "$scratch/panic.stdout")" = before

echo "$passed passed, $failed failed"
((failed == 0))
