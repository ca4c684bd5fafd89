#!/usr/bin/env bash
# Installs what `make compare` sets Valet beside: libsecret and gnome-keyring, python-keyring, pass, KeePassXC. Debian and Ubuntu only.
# None of it is needed for anything else, and what is absent is left out of the comparison.
set -euo pipefail

packages=(
    libsecret-1-dev libsecret-tools gnome-keyring dbus pkg-config gcc libc6-dev  # libsecret, and our C program over it
    python3-keyring python3-secretstorage
    pass tree gnupg
    keepassxc
)
if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here. Install these, named as on Debian: ${packages[*]}" >&2
    exit 1
fi
run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "You are not root and there is no sudo; as root, run: apt-get install ${packages[*]}" >&2
        exit 1
    fi
    run_as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${run_as_root[@]}" apt-get update -q >/dev/null
# One by one: a system that lacks one of them still has the others.
failed=()
for package in "${packages[@]}"; do
    "${run_as_root[@]}" apt-get install -y -q --no-install-recommends "$package" >/dev/null || failed+=("$package")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "Could not be installed, and will be left out of the comparison: ${failed[*]}" >&2
fi
