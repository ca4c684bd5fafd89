#!/usr/bin/env bash
# Installs the missing system packages for building and testing, on Debian and Ubuntu; on other systems it lists them.
# Does nothing if all packages are installed.
#
#   Scripts/install-dependencies.sh              packages for building and testing
#   Scripts/install-dependencies.sh build        packages for building only
#   Scripts/install-dependencies.sh daemon       packages for building only, with those for keychaind's module for PAM and its programs in C
#   Scripts/install-dependencies.sh secret-service  packages for building only, with those for keychain-secret-service
#   Scripts/install-dependencies.sh objective-c  packages for building and testing, with GNUstep for the Objective-C classes
#   Scripts/install-dependencies.sh etcd         packages for building and testing, with etcd for the tests of KeychainSyncEtcd
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

# On Apple platforms the products use Security.framework, which is part of the system.
[ "$(uname -s)" = Linux ] || exit 0

missing=()
has_file() { compgen -G "$1" >/dev/null; }
has_file '/usr/include/sqlite3.h' || missing+=(libsqlite3-dev)      # the database; the only library that is linked
has_file '/usr/include/stdio.h' || missing+=(libc6-dev)             # C headers that Swift builds against
has_file '/usr/lib/gcc/*/*/libstdc++.so' || has_file '/usr/lib/*/libstdc++.so' || missing+=(g++)
command -v git >/dev/null 2>&1 || missing+=(git)                    # SwiftPM downloads packages with it
has_file '/etc/ssl/certs/*' || missing+=(ca-certificates)           # certificates for git
command -v make >/dev/null 2>&1 || missing+=(make)                  # absent if this script was started by hand
if [ "${1:-}" = secret-service ]; then
    has_file '/usr/include/systemd/sd-bus.h' || missing+=(libsystemd-dev)      # headers of the bus
    has_file '/usr/include/gcrypt.h' || missing+=(libgcrypt20-dev)             # headers of the key agreement
fi
builds_only=false
case ${1:-} in build | daemon | secret-service) builds_only=true ;; esac
if [ "${1:-}" = daemon ] || ! $builds_only; then
    has_file '/usr/include/security/pam_modules.h' || missing+=(libpam0g-dev)  # headers for keychaind's module
    has_file '/usr/include/systemd/sd-bus.h' || missing+=(libsystemd-dev)      # headers for the programs in C
    command -v "${CC:-cc}" >/dev/null 2>&1 || missing+=(gcc)            # compiles these, and the example in C
fi
if ! $builds_only; then
    command -v strace >/dev/null 2>&1 || missing+=(strace)              # tests that a stored secret was flushed
    command -v bwrap >/dev/null 2>&1 || missing+=(bubblewrap)           # tests of programs in a sandbox
    command -v keyctl >/dev/null 2>&1 || missing+=(keyutils)            # sessions with a keyring of their own
    command -v swtpm >/dev/null 2>&1 || missing+=(swtpm)                # a software TPM
    command -v tpm2_clear >/dev/null 2>&1 || missing+=(tpm2-tools)      # tests clear the software TPM with it
    has_file '/usr/include/tss2/tss2_esys.h' || missing+=(libtss2-dev)  # headers for the trait TPM
    has_file '/usr/lib/*/libtss2-tcti-swtpm.so*' || has_file '/lib/*/libtss2-tcti-swtpm.so*' || missing+=(libtss2-tcti-swtpm0)
    command -v valgrind >/dev/null 2>&1 || missing+=(valgrind)          # leak checks of the C interface
    command -v pkg-config >/dev/null 2>&1 || missing+=(pkg-config)      # finds the C library
    command -v readelf >/dev/null 2>&1 || missing+=(binutils)           # examines the C library; strips debug information for Valgrind
    command -v python3 >/dev/null 2>&1 || missing+=(python3)            # the test report, and the example in Python
    command -v gpg >/dev/null 2>&1 || missing+=(gnupg)                    # decrypts the entries of pass
    command -v dbus-daemon >/dev/null 2>&1 && command -v dbus-send >/dev/null 2>&1 || missing+=(dbus)  # a message bus for the tests
    has_file '/usr/lib/python3/dist-packages/dbusmock' || missing+=(python3-dbusmock)                  # a stand-in for systemd-logind
    command -v fprintd-enroll >/dev/null 2>&1 || missing+=(fprintd)     # verifies fingers of a virtual reader, with polkit
    command -v gnome-keyring-daemon >/dev/null 2>&1 || missing+=(gnome-keyring)                        # a Secret Service to import from
    has_file '/usr/include/gcrypt.h' || missing+=(libgcrypt20-dev)      # headers for the trait SecretService
    command -v gdbus >/dev/null 2>&1 || missing+=(libglib2.0-bin)       # calls the Secret Service as GLib's programs do
    command -v secret-tool >/dev/null 2>&1 || missing+=(libsecret-tools)                               # stores secrets in it
    command -v rsync >/dev/null 2>&1 || missing+=(rsync)                # moves the folders of devices that synchronize
    command -v pinentry-tty >/dev/null 2>&1 || missing+=(pinentry-tty)  # prompts for a passcode
    command -v pinentry-curses >/dev/null 2>&1 || missing+=(pinentry-curses)
fi
if [ "${1:-}" = objective-c ]; then
    has_file '/usr/lib/gcc/*/*/include/objc/objc.h' || missing+=(gobjc)                         # the runtime
    has_file '/usr/include/GNUstep/Foundation/Foundation.h' || missing+=(libgnustep-base-dev)   # Foundation
fi
# Separate, because Debian's package also starts etcd as a service where systemd runs.
if [ "${1:-}" = etcd ]; then
    command -v etcd >/dev/null 2>&1 || missing+=(etcd-server)           # servers that tests start and kill
    command -v etcdctl >/dev/null 2>&1 || missing+=(etcd-client)        # compacts, restores, and sets up users
    command -v openssl >/dev/null 2>&1 || missing+=(openssl)            # certificates of servers and clients
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing: ${missing[*]} (names as on Debian and Ubuntu)." >&2
    echo "apt-get is not available: install the packages with this system's package manager, then run the command again." >&2
    exit 1
fi
run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "Missing: ${missing[*]}. You are not root, and sudo is not available. Run as root:" >&2
        echo "  apt-get install ${missing[*]}" >&2
        exit 1
    fi
    run_as_root=(sudo)
fi
echo "Installing ${missing[*]}${run_as_root[0]:+ with sudo}."
export DEBIAN_FRONTEND=noninteractive
install() { "${run_as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null; }
if ! install 2>/dev/null; then
    # The list of packages may be missing or out of date.
    "${run_as_root[@]}" apt-get update -q >/dev/null
    install || { echo "apt-get could not install ${missing[*]}; its message is above." >&2; exit 1; }
fi
