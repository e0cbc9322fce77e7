# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share: where the project is, how to speak, and how to get
# a Debian package. Sourced, never run.
# shellcheck shell=bash

script=${0##*/}
# shellcheck disable=SC2034  # used by the scripts that source this
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
layers=(common proto coordinator worker launcher)

say()
{
    printf '%s: %s\n' "$script" "$*" >&2
}

die()
{
    say "$*"
    exit 1
}

# layer_files ROOT PATTERN: the product's files of that name, from ROOT.
layer_files()
{
    (cd "$1" && find "${layers[@]}" -name "$2" -type f | sort)
}

# shell_files ROOT: every shell script of the project, told by its first line
# or its name.
shell_files()
{
    (cd "$1" && {
        grep -rlE --exclude-dir=build --exclude-dir=.git \
            '^#!(/usr/bin/env |/bin/)(ba)?sh' .ci scripts tests docs
        find scripts tests -name '*.sh'
    } | sort -u)
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "needs root or sudo for: $*"
    fi
}

# missing_packages NAME...: those that are not installed, one a line.
missing_packages()
{
    local package

    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
            grep -q 'ok installed' || echo "$package"
    done
}

# install_packages NAME...: those that are not installed yet. Nothing is
# asked of the network when all are there.
install_packages()
{
    local missing

    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -eq 0 ] && return 0
    command -v apt-get >/dev/null ||
        die "install these packages first: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get update -qq || die "apt-get update failed"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends "${missing[@]}" >/dev/null ||
        die "could not install ${missing[*]}"
}

# install_daemons NAME...: packages that bring a service, which is not wanted.
# Where an init system would start it at every boot, nothing is installed;
# elsewhere the policy that Debian asks denies the start.
install_daemons()
{
    local missing policy=/usr/sbin/policy-rc.d

    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -eq 0 ] && return 0
    if [ -d /run/systemd/system ]; then
        say "not installing ${missing[*]}, which would run at every boot;" \
            "tests that need them are skipped"
    elif [ -e "$policy" ]; then
        install_packages "$@"
    else
        (
            trap 'as_root rm -f "$policy"' EXIT
            printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
            as_root chmod 755 "$policy"
            install_packages "$@"
        )
    fi
}

# What it takes to build the programs.
# shellcheck disable=SC2034  # used by the scripts that source this
build_packages=(gcc libc6-dev cmake ninja-build pkg-config libuv1-dev
    libprotobuf-c-dev protobuf-c-compiler libjansson-dev libhwloc-dev
    libssl-dev python3)
