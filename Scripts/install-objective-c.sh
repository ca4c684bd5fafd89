#!/usr/bin/env bash
# Installs what the classes for Objective-C are built with, where the system lacks it: GNUstep's Foundation and GCC's Objective-C runtime.
# Debian and Ubuntu only; elsewhere it says what is missing. Whoever builds Swift alone needs none of it.
set -euo pipefail

[ "$(uname -s)" = Linux ] || exit 0

missing=()
compgen -G '/usr/lib/gcc/*/*/include/objc/objc.h' >/dev/null || missing+=(gobjc)
[ -f /usr/include/GNUstep/Foundation/Foundation.h ] || missing+=(libgnustep-base-dev)
command -v valgrind >/dev/null 2>&1 || missing+=(valgrind)  # for its tests
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing: ${missing[*]} (names as on Debian and Ubuntu)." >&2
    echo "There is no apt-get here: install the same with this system's package manager, then run this again." >&2
    exit 1
fi
run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "Missing: ${missing[*]}. You are not root and there is no sudo; as root, run:" >&2
        echo "  apt-get install ${missing[*]}" >&2
        exit 1
    fi
    run_as_root=(sudo)
fi
echo "Installing ${missing[*]}${run_as_root[0]:+ with sudo}."
export DEBIAN_FRONTEND=noninteractive
install() { "${run_as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null; }
if ! install 2>/dev/null; then
    # The list of packages may be absent or old.
    "${run_as_root[@]}" apt-get update -q >/dev/null
    install || { echo "apt-get could not install ${missing[*]}; its message stands above." >&2; exit 1; }
fi
