#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Mesa of Debian's backports into the lab's cache, and prints the variables that make a program
# use it. Its software renderer imports dma-bufs, which that of Debian 12 cannot. Nothing is installed, and
# the host's package lists stay as they are.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cache=${LAB_CACHE:-$PWD/.lab-cache}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)
mesa=$cache/mesa

if ! [ -e "$mesa" ]; then
  work=$cache/fetching-mesa
  rm -rf "$work"
  mkdir -p "$work/lists/partial" "$work/debs" "$work/root"
  # Separate lists keep the backports out of the host's own package lists.
  repository=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' | head -n 1)
  echo "deb $repository bookworm-backports main" >"$work/sources"
  options=(-qq -o "Dir::Etc::sourcelist=$work/sources" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >&2
  (cd "$work/debs" && apt-get "${options[@]}" download libegl-mesa0/bookworm-backports \
    libgbm1/bookworm-backports mesa-libgallium/bookworm-backports \
    libgl1-mesa-dri/bookworm-backports libdrm2/bookworm-backports >&2)
  for package in "$work/debs"/*.deb; do dpkg -x "$package" "$work/root"; done
  mv "$work/root" "$mesa"
  rm -rf "$work"
fi

libraries=$mesa/usr/lib/$(uname -m)-linux-gnu
printf '%s=%q ' LD_LIBRARY_PATH "$libraries" LIBGL_DRIVERS_PATH "$libraries/dri" \
  __EGL_VENDOR_LIBRARY_FILENAMES "$mesa/usr/share/glvnd/egl_vendor.d/50_mesa.json"
