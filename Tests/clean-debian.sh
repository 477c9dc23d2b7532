# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that need a Debian in which nothing is installed.

# make_clean_debian ROOT: makes one, with the package sources of this machine. It must be removed with
# remove_clean_debian.
make_clean_debian() {
  local root=$1 log
  log=$(mktemp)
  if ! debootstrap --variant=minbase bookworm "$root" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm "$log"
    return 1
  fi
  rm "$log"
  cp /etc/resolv.conf "$root/etc/"
  cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  # The root is deleted afterwards, so nothing has to be synced.
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe"
  mount --bind /dev "$root/dev"
  mount -t proc proc "$root/proc"
}

# remove_clean_debian ROOT: unmounts what is mounted in it, and removes it.
remove_clean_debian() {
  local directory
  # The deepest first.
  awk -v root="$1/" 'index($2, root) == 1 {print $2}' /proc/mounts | sort -r |
    while read -r directory; do umount "$directory"; done
  rm -rf --one-file-system "$1"
}
