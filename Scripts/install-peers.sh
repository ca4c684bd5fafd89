#!/usr/bin/env bash
# Installs the programs that `make compare` measures beside Valet: libsecret with gnome-keyring, python-keyring, pass, and KeePassXC; and those that
# `make compare-sync` measures: pass, gopass, and git-remote-gcrypt with git, and KeePassXC.
# For Debian and Ubuntu only.
# Nothing else needs them, and a comparison leaves out a program that is not installed.
set -euo pipefail

packages=(
    libsecret-1-dev libsecret-tools gnome-keyring dbus pkg-config gcc libc6-dev  # libsecret, and our C program over it
    python3-keyring python3-secretstorage
    pass tree gnupg
    keepassxc
    git gopass git-remote-gcrypt
)
if ! command -v apt-get >/dev/null 2>&1; then
    echo "apt-get is not available. Install these packages (names as on Debian): ${packages[*]}" >&2
    exit 1
fi
run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "You are not root, and sudo is not available. Run as root: apt-get install ${packages[*]}" >&2
        exit 1
    fi
    run_as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${run_as_root[@]}" apt-get update -q >/dev/null
# One at a time, so that a package that is not available does not prevent the others.
failed=()
for package in "${packages[@]}"; do
    "${run_as_root[@]}" apt-get install -y -q --no-install-recommends "$package" >/dev/null || failed+=("$package")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "Not installed, so the comparison leaves them out: ${failed[*]}" >&2
fi
