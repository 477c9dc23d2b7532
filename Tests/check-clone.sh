#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests a bare clone in a clean Debian, as the README says: the one line of packages, then
# `swift build` and `swift test`. The toolchain is that of this machine, as are local mirrors of Swift
# packages that git is configured to use.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
# shellcheck source=Tests/clean-debian.sh
. Tests/clean-debian.sh
install_packages debootstrap
work=$(mktemp -d)
trap 'remove_clean_debian "$work/debian"; rm -rf "$work"' EXIT
debian=$work/debian
make_clean_debian "$debian"

# show DIRECTORY [PLACE]: shows a directory in the clean Debian, where it cannot be written.
show() {
  mkdir -p "$debian${2-$1}"
  mount --bind -o ro "$1" "$debian${2-$1}"
}
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swiftc)")")")
show "$toolchain" /opt/toolchain
git clone --quiet --no-hardlinks . "$debian/root/overcrank"
while read -r key address; do
  mirror=${key#url.}
  mirror=${mirror%.insteadof}
  git config --file "$debian/root/.gitconfig" --add "url.$mirror.insteadOf" "$address"
  [[ ! -d $mirror ]] || mountpoint -q "$debian$mirror" || show "$mirror"
done < <(git config --get-regexp '^url\..*\.insteadof$')
git config --file "$debian/root/.gitconfig" --add safe.directory '*'

# The packages that the toolchain itself needs, by https://www.swift.org/install/linux.
cat >"$debian/use.sh" <<'USE'
set -eu
export DEBIAN_FRONTEND=noninteractive HOME=/root PATH=/opt/toolchain/bin:$PATH
apt-get update -qq
apt-get install -y -qq --no-install-recommends binutils-gold gcc git libc6-dev libcurl4-openssl-dev \
  libedit-dev libgcc-12-dev libpython3-dev libsqlite3-dev libstdc++-12-dev libxml2-dev \
  libncurses-dev libz3-dev tzdata zlib1g-dev
cd /root/overcrank
packages=$(sed -n 's/^sudo apt-get install //p' README.md)
apt-get install -y -qq --no-install-recommends $packages
swift build
echo "== built"
swift test
USE
chroot "$debian" sh /use.sh
