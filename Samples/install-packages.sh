# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that need Debian packages.

# The packages that the library and the command are built with.
# shellcheck disable=SC2034  # Used by the scripts that source this file.
build_packages=(
  pkg-config libv4l-dev libavcodec-dev libavformat-dev libswscale-dev libswresample-dev
  librubberband-dev libasound2-dev libturbojpeg0-dev
)

# Those of the optional libraries, which a build of everything needs besides: windows, HEIC photos,
# textures and the renderer that works without a GPU.
# shellcheck disable=SC2034  # Used by the scripts that source this file.
optional_packages=(
  libsdl2-dev libheif-dev libegl-dev libgles-dev libegl1 libgles2 libgl1-mesa-dri
)

# install_packages NAME...: installs the missing packages and prints their names.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
      missing+=("$name")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "Installing the Debian packages that are missing: ${missing[*]}" >&2
  local root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  # A fresh machine has no package lists yet.
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# download_package NAME DIRECTORY: unpacks a Debian package without installing it.
download_package() {
  local files
  files=$(mktemp -d)
  # A fresh machine has no package lists yet.
  (cd "$files" && apt-get download -qq -o APT::Sandbox::User=root "$1" >&2) || {
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    (cd "$files" && apt-get download -qq -o APT::Sandbox::User=root "$1" >&2)
  }
  dpkg-deb --extract "$files"/*.deb "$2"
  rm -rf "$files"
}
