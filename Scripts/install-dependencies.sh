#!/usr/bin/env bash
# Installs what building and testing need and the system lacks. Debian and Ubuntu only; elsewhere it says what is missing.
# Does nothing, and asks for nothing, when all of it is there. `install-dependencies.sh objective-c` adds what the classes for Objective-C are built and
# tested with: whoever builds Swift alone needs none of it. `install-dependencies.sh build` leaves out what only tests need.
set -euo pipefail

if ! command -v swift >/dev/null 2>&1; then
    echo "Swift is missing. Install Swift 6.2 or newer (https://www.swift.org/install/linux) and put \`swift\` on the PATH." >&2
    exit 1
fi
version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
if [ "$(printf '%s\n6.2\n' "${version:-0}" | sort -V | head -n 1)" != 6.2 ]; then
    echo "Swift ${version:-of an unknown version} is too old: 6.2 or newer is needed (https://www.swift.org/install/linux)." >&2
    exit 1
fi

# Apple platforms bring everything: there the products stand on Security.framework.
[ "$(uname -s)" = Linux ] || exit 0

missing=()
has_file() { compgen -G "$1" >/dev/null; }
has_file '/usr/include/sqlite3.h' || missing+=(libsqlite3-dev)      # the database; the one library we link
has_file '/usr/include/stdio.h' || missing+=(libc6-dev)             # the C headers that Swift itself builds against
has_file '/usr/lib/gcc/*/*/libstdc++.so' || has_file '/usr/lib/*/libstdc++.so' || missing+=(g++)
command -v git >/dev/null 2>&1 || missing+=(git)                    # SwiftPM fetches packages with it
has_file '/etc/ssl/certs/*' || missing+=(ca-certificates)           # and git checks servers with these
command -v make >/dev/null 2>&1 || missing+=(make)                  # when this was not started by it
if [ "${1:-}" != build ]; then
    command -v strace >/dev/null 2>&1 || missing+=(strace)              # the proof that a stored secret was flushed
    command -v keyctl >/dev/null 2>&1 || missing+=(keyutils)            # sessions with a keyring of their own
    command -v swtpm >/dev/null 2>&1 || missing+=(swtpm)                # a TPM in software
    command -v tpm2_clear >/dev/null 2>&1 || missing+=(tpm2-tools)      # what tests do to it
    has_file '/usr/include/tss2/tss2_esys.h' || missing+=(libtss2-dev)  # its headers, for the trait TPM
    has_file '/usr/lib/*/libtss2-tcti-swtpm.so*' || has_file '/lib/*/libtss2-tcti-swtpm.so*' || missing+=(libtss2-tcti-swtpm0)
    command -v valgrind >/dev/null 2>&1 || missing+=(valgrind)          # the C interface without leaks
    command -v pkg-config >/dev/null 2>&1 || missing+=(pkg-config)      # how a C program finds it
    command -v python3 >/dev/null 2>&1 || missing+=(python3)            # and the example in Python
    command -v pinentry-tty >/dev/null 2>&1 || missing+=(pinentry-tty)  # programs that ask for a passcode
    command -v pinentry-curses >/dev/null 2>&1 || missing+=(pinentry-curses)
fi
if [ "${1:-}" = objective-c ]; then
    has_file '/usr/lib/gcc/*/*/include/objc/objc.h' || missing+=(gobjc)                         # the runtime
    has_file '/usr/include/GNUstep/Foundation/Foundation.h' || missing+=(libgnustep-base-dev)   # Foundation
    command -v strip >/dev/null 2>&1 || missing+=(binutils)                                     # Valgrind and debug information
fi
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
