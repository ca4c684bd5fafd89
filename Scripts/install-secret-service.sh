#!/usr/bin/env bash
# Builds (`build`), installs (`install`), and uninstalls (`uninstall`) keychain-secret-service. The Makefile documents the targets.
#
# PREFIX (default: /usr/local) is the installation prefix. The description of the portal goes to /usr/share, or for a PREFIX outside of /usr and /opt
# to PREFIX/share. DESTDIR is a staging directory, which precedes it. No desktop is switched to the
# program: each user does that with `valet secret-service enable`.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
destination=${DESTDIR:-}
# Files of systemd and of the bus name the program.
case $prefix in
    *[!A-Za-z0-9/._+@:,~-]*) echo "PREFIX must have letters, digits, and / . _ + @ : , ~ - only: $prefix" >&2; exit 2 ;;
    /*) ;;
    *) echo "PREFIX must begin with /: $prefix" >&2; exit 2 ;;
esac
case $destination in
    '' | /*) ;;
    *) echo "DESTDIR must begin with /: $destination" >&2; exit 2 ;;
esac
# A scratch path of its own: a trait changes the options of all targets.
swift_options=(-c release --traits SecretService --scratch-path "$PWD/.build/install-secret-service" -Xswiftc -static-stdlib -Xswiftc -use-ld=lld -Xlinker -s)
target=$destination$prefix/libexec/keychain-secret-service
# xdg-desktop-portal before 1.20.1 looks below /usr/share only; later versions also in the data directories of the session.
case $prefix in
    /usr | /usr/* | /opt/*) data=/usr/share ;;
    *) data=$prefix/share ;;
esac
portal=$destination$data/xdg-desktop-portal/portals/keychain.portal

# Only the installation uses sudo, and only if a directory is not writable.
as_owner=()
for place in "$destination$prefix" "$destination$data"; do
    while [ ! -e "$place" ]; do place=$(dirname "$place"); done
    if [ ! -w "$place" ] && [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            { echo "$place is not writable. Run this command as root, or choose another directory: make ${1:-} PREFIX=\$HOME/.local" >&2; exit 1; }
        as_owner=(sudo)
    fi
done

registration=$destination/etc/keychain/entitlements.d/secret-service.entitlements
# A program in a directory of a user is no program of root, and keychaind gives it no items that the user's other programs cannot read.
is_of_root() { [ -n "$destination" ] || [ ${#as_owner[@]} -ne 0 ] || [ "$(id -u)" -eq 0 ]; }

# Registers the program with keychaind, whether that is installed or not.
register() {
    if is_of_root; then
        sed -e "s|@PREFIX@|$prefix|" Scripts/secret-service.entitlements.in | "${as_owner[@]}" install -D -m 644 /dev/stdin "$registration"
    else
        echo "Every program of yours can use the items of the keyring: only a program that root has installed keeps them apart."
    fi
}

build() { [ -n "${PROGRAM:-}" ] || swift build "${swift_options[@]}" --product keychain-secret-service; }

case ${1:-} in
    build) build ;;
    install)
        build
        # Tests install the program that they have built.
        program=${PROGRAM:-$(swift build "${swift_options[@]}" --show-bin-path)/keychain-secret-service}
        "${as_owner[@]}" install -D -m 755 "$program" "$target"
        "${as_owner[@]}" install -D -m 644 Scripts/keychain.portal "$portal"
        register
        echo "Installed $target and $portal. \`valet secret-service enable\` makes the keychain your keyring."
        ;;
    uninstall)
        "${as_owner[@]}" rm -f "$target" "$portal"
        # Without it every program could use the items.
        if [ -e "$registration" ]; then echo "$registration stays: it keeps the items from other programs."; fi
        echo "Removed $target and $portal. Users who have made it their keyring run \`valet secret-service disable\`."
        ;;
    *) echo "Usage: Scripts/install-secret-service.sh build|install|uninstall" >&2; exit 2 ;;
esac
