#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests/Tools/Lab/run.sh COMMAND: runs a shell command line in the emulated machine, where /dev/video0
# is the kernel's own virtual camera. README.md beside this file tells what it is and what it proves.

set -eEuo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(cd "$lab/../../.." && pwd -P)

usage() {
  cat <<EOF
Usage: Tests/Tools/Lab/run.sh COMMAND

Boots an emulated machine with a virtual camera (vivid) and a loopback sound card, runs the shell
command line COMMAND there in this checkout, prints its output and exits with its status.

  124  the time was up        125  the lab itself failed

Environment (default):
  LAB_OUT      the one host folder that the guest may write, at the same path in there
               (.lab-cache/out)
  LAB_CACHE    where the kernel is kept; several checkouts may share it (.lab-cache)
  LAB_TIMEOUT  seconds for boot and command together (600)
  LAB_MOUNTS   more host folders to show below /tmp, /run or /dev/shm, separated by colons ()
  LAB_VIVID    parameters of the vivid module (n_devs=1)
  LAB_MEMORY   memory of the guest, of which /tmp may take three quarters (2G)
  LAB_ACCEL    an accelerator of qemu's, and with it two processors on the host's clock; by default
               one processor whose clock counts its own instructions (see README.md)
EOF
}

fail() {
  echo "lab: $*" >&2
  exit 125
}

# What was not foreseen must not pass for the command's own status either.
trap 'fail "run.sh itself failed at line $LINENO"' ERR

# An absolute path with no symbolic links, which is what the guest mounts.
absolute() {
  mkdir -p -- "$1" && (cd -- "$1" && pwd -P)
}

case ${1-} in
  -h | --help)
    usage
    exit 0
    ;;
  '')
    usage >&2
    exit 125
    ;;
esac

cache=$(absolute "${LAB_CACHE:-$checkout/.lab-cache}") || fail "cannot make the folder LAB_CACHE"
out=$(absolute "${LAB_OUT:-$checkout/.lab-cache/out}") || fail "cannot make the folder LAB_OUT"
limit=${LAB_TIMEOUT:-600}
[[ $limit =~ ^[1-9][0-9]*$ ]] || fail "LAB_TIMEOUT is '$limit', not a number of seconds"

# --- What is needed ------------------------------------------------------------------------------

missing=()
while read -r package; do
  [[ $package == '' || $package == '#'* ]] && continue
  # shellcheck disable=SC2016 # the dollar is dpkg-query's
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
    missing+=("$package")
done <"$lab/packages"
if ((${#missing[@]})); then
  fail "missing packages, install them first: apt-get install ${missing[*]}"
fi

# --- The kernel and the initramfs, kept between runs ---------------------------------------------

# Loaded in this order. virtio's and 9p's carry the shares; then come the devices.
transport=(virtio_pci 9pnet_virtio 9p)
devices=(vivid snd-aloop snd-hrtimer snd-dummy)

fetch_kernel() {
  local name
  kernel_name() {
    LC_ALL=C apt-cache depends linux-image-amd64 2>/dev/null |
      sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1 || true
  }
  name=$(kernel_name)
  if [[ -z $name ]]; then
    apt-get -qq update >&2 || fail "apt-get update failed; it is needed once, to find the kernel"
    name=$(kernel_name)
  fi
  [[ -n $name ]] || fail "apt knows no kernel package behind linux-image-amd64"

  rm -rf "$cache/fetching"
  mkdir "$cache/fetching"
  echo "lab: fetching $name" >&2
  # As its own user, apt could not write here. Lists that are out of date name a version that the
  # archive no longer has.
  (
    cd "$cache/fetching"
    download=(apt-get -qq -o APT::Sandbox::User=root download "$name")
    "${download[@]}" >&2 || { apt-get -qq update >&2 && "${download[@]}" >&2; }
  ) || fail "apt-get could not download $name"
  dpkg -x "$cache/fetching"/*.deb "$cache/fetching" || fail "dpkg could not unpack $name"
  rm "$cache/fetching"/*.deb
  depmod -b "$cache/fetching" "${name#linux-image-}" || fail "depmod failed on $name"
  echo "${name#linux-image-}" >"$cache/fetching/version"
  mv "$cache/fetching" "$cache/kernel"
}

# Puts the named modules, and what they depend on, into the image, and their order into a list.
add_modules() { # add_modules IMAGE LIST MODULE...
  local image=$1 list=$2 order verb file name
  shift 2
  order=$(modprobe -d "$cache/kernel" -S "$version" --show-depends -a "$@") ||
    fail "the kernel package lacks one of the modules $*"
  while read -r verb file _; do
    [[ $verb == insmod ]] || continue
    name=$(basename "$file")
    # Later kernels ship their modules compressed, which busybox may not read.
    case $name in
      *.xz) name=${name%.xz} && xz -dc "$file" >"$image/modules/$name" ;;
      *.zst) name=${name%.zst} && zstd -qdc "$file" >"$image/modules/$name" ;;
      *) cp "$file" "$image/modules/$name" ;;
    esac || fail "cannot unpack the module $file"
    # A module that two others need stands in the lists once.
    grep -qsxF "$name" "$image"/modules/{transport,devices} ||
      echo "$name" >>"$image/modules/$list"
  done <<<"$order"
}

build_initramfs() { # build_initramfs FILE
  local image=$cache/building applet
  rm -rf "$image"
  mkdir -p "$image"/{bin,control,dev,modules,proc,root,sys}
  cp /bin/busybox "$image/bin/busybox"
  for applet in $(/bin/busybox --list); do
    [[ $applet == busybox ]] || ln -s busybox "$image/bin/$applet"
  done
  install -m 755 "$lab/init" "$image/init"
  add_modules "$image" transport "${transport[@]}"
  add_modules "$image" devices "${devices[@]}"
  (cd "$image" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$1.part"
  mv "$1.part" "$1"
  rm -rf "$image"
}

# One at a time: several checkouts may share the cache. Finished files only ever appear whole, by
# a rename, and the image's name says what it was made of, so a run needs the lock no longer than
# it takes to find them.
exec {lock}>"$cache/lock"
flock "$lock"
[[ -e $cache/kernel/version ]] || fetch_kernel
version=$(<"$cache/kernel/version")
made_of=$({
  echo "$version ${transport[*]} / ${devices[*]}"
  declare -f add_modules build_initramfs
  cat "$lab/init" /bin/busybox
} | sha256sum)
initramfs=$cache/initramfs-${made_of:0:16}.gz
[[ -e $initramfs ]] || build_initramfs "$initramfs"
exec {lock}>&-

# --- The machine ---------------------------------------------------------------------------------

control=$(mktemp -d)
qemu=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
  [[ -z $qemu ]] || kill "$qemu" 2>/dev/null || true
  rm -rf "$control"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

shares=()
add_share() { # add_share TAG MODE PATH
  local readonly=off
  [[ $2 == rw ]] || readonly=on
  # qemu takes a doubled comma in a value for a comma.
  shares+=(-virtfs "local,path=${3//,/,,},mount_tag=$1,security_model=none,readonly=$readonly,multidevs=remap")
}

add_share control rw "$control"
add_share root ro /
{
  add_share checkout ro "$checkout"
  echo "checkout ro $checkout"
  number=0
  IFS=: read -r -a folders <<<"${LAB_MOUNTS:-}"
  for folder in ${folders[@]+"${folders[@]}"}; do
    [[ -d $folder ]] || fail "LAB_MOUNTS names '$folder', which is not a folder"
    folder=$(cd "$folder" && pwd -P)
    number=$((number + 1))
    add_share "more$number" ro "$folder"
    echo "more$number ro $folder"
  done
  # Last, because it may lie in one of the others.
  add_share out rw "$out"
  echo "out rw $out"
} >"$control/mounts"

# The system's folders come first: a wrapper from a user's home may want what the guest lacks.
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
[[ ! -d /opt/swift/usr/bin ]] || path+=:/opt/swift/usr/bin
printf '%s\n' "$path" >"$control/path"
printf '%s\n' "$out" >"$control/out"
printf '%s\n' "$checkout" >"$control/directory"
printf '%s\n' "${LAB_VIVID:-n_devs=1}" >"$control/vivid"
printf '%s\n' "$*" >"$control/command"
: >"$control/stdout"
: >"$control/stderr"
: >"$control/console"

# Emulated, because the machines that build this have no KVM. Each instruction takes the guest a
# nanosecond, and idle time passes at once: so the guest never notices that the host is busy.
if [[ ${LAB_ACCEL-} ]]; then
  processors=(-accel "$LAB_ACCEL" -smp 2)
else
  processors=(-accel tcg,thread=single -icount shift=0,sleep=off -smp 1)
fi
# timeout makes a process group of its own, and hands the signal on to qemu.
timeout --kill-after=5 "$limit" \
  qemu-system-x86_64 "${processors[@]}" -cpu max \
  -m "${LAB_MEMORY:-2G}" \
  -nodefaults -nic none -display none -no-reboot -serial "file:$control/console" \
  -kernel "$cache/kernel/boot/vmlinuz-$version" -initrd "$initramfs" \
  -append "console=ttyS0 quiet panic=1" "${shares[@]}" \
  </dev/null >"$control/qemu" 2>&1 &
qemu=$!

# What the command prints is passed on as it comes: each descriptor remembers how far it was read.
exec {output}<"$control/stdout" {errors}<"$control/stderr"
pass_on() {
  cat <&"$output"
  cat <&"$errors" >&2
}
ended=0
while kill -0 "$qemu" 2>/dev/null; do
  sleep 1 &
  nap=$!
  # Ends with the machine, without waiting for the second to pass.
  wait -n "$qemu" "$nap" || true
  kill "$nap" 2>/dev/null || true
  pass_on
done
wait "$qemu" || ended=$?
qemu=
pass_on

if [[ -s $control/status ]]; then
  exit "$(<"$control/status")"
fi

# The console's carriage returns and colours are of no use in a log.
{
  echo "lab: the end of the console:"
  tail -n 60 "$control/console" | sed 's/\r//g; s/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\x1bc//g'
  cat "$control/qemu"
} >&2
if ((ended == 124 || ended == 137)); then
  echo "lab: the machine did not finish within $limit s (LAB_TIMEOUT) and was killed" >&2
  exit 124
fi
reason=$(grep -m 1 -oE 'Kernel panic.*|lab: .*' "$control/console" | tr -d '\r' || true)
fail "the machine ended before it could report the command's exit status" \
  "(${reason:-no reason on the console}; qemu's own status $ended)"
