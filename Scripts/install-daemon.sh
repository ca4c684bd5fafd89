#!/usr/bin/env bash
# Builds (`build`), installs (`install`), and uninstalls (`uninstall`) the services keychaind, keychain-peer, keychain-watch, keychain-fingerprint, and
# keychain-fprint-digest, keychain-agent, and the module for PAM. The Makefile documents the targets.
#
# PREFIX (default: /usr/local) is the installation prefix. DESTDIR is a staging directory, which precedes it; with it nothing is started, and no
# user is created.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
destination=${DESTDIR:-}
case $prefix in
    *[[:space:]\&\|\\]*) echo "PREFIX must not contain spaces, &, | or \\: $prefix" >&2; exit 2 ;;
    /*) ;;
    *) echo "PREFIX must begin with /: $prefix" >&2; exit 2 ;;
esac
case $destination in
    '' | /*) ;;
    *) echo "DESTDIR must begin with /: $destination" >&2; exit 2 ;;
esac
built=$PWD/.build/install
# The same build as that of the command.
swift_options=(-c release --scratch-path "$built" -Xswiftc -static-stdlib -Xswiftc -use-ld=lld -Xlinker -s)

# Only the installation uses sudo. Build products stay the user's.
as_root=()
if [ -z "$destination" ] && [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "Run this command as root: keychaind is a service of the system." >&2; exit 1; }
    as_root=(sudo)
fi
sockets=(keychain-peer.socket keychain-fprint-digest.socket keychaind.socket)
services=(keychaind.service keychain-peer.service keychain-watch.service keychain-fingerprint.service)
# The last one has an instance for each connection.
units=("${sockets[@]}" "${services[@]}" keychain-fprint-digest@.service)
swift_programs=(keychaind keychain-peer keychain-agent keychain-fprint-digest)
c_programs=(keychain-watch keychain-fingerprint)
has_systemd() { [ -z "$destination" ] && [ -d /run/systemd/system ]; }

build() {
    local product program unit
    for product in "${swift_programs[@]}"; do swift build "${swift_options[@]}" --product "$product"; done
    for unit in "${units[@]}" keychain-agent.service pam-config; do sed -e "s|@PREFIX@|$prefix|" "Scripts/$unit.in" >"$built/$unit"; done
    local c_options=(-std=c11 -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wall -Wextra -Werror -Wl,-z,relro,-z,now,-z,defs)
    "${CC:-cc}" "${c_options[@]}" -shared -fPIC -fvisibility=hidden -o "$built/pam_keychain.so" Helpers/pam_keychain.c -lpam
    for program in "${c_programs[@]}"; do
        "${CC:-cc}" "${c_options[@]}" -fPIE -pie -o "$built/$program" "Helpers/${program/-/_}.c" -lsystemd
    done
}

# The installed files: mode, source, destination. systemd looks for its files in the lib directories of /usr and of /usr/local.
files() {
    local bin program unit
    bin=$(swift build "${swift_options[@]}" --show-bin-path)
    for program in "${swift_programs[@]}"; do printf '%s\t%s\t%s\n' 755 "$bin/$program" "$prefix/libexec/$program"; done
    for program in "${c_programs[@]}"; do printf '%s\t%s\t%s\n' 755 "$built/$program" "$prefix/libexec/$program"; done
    printf '%s\t%s\t%s\n' 644 "$built/keychain-agent.service" "$prefix/lib/systemd/user/keychain-agent.service"
    for unit in "${units[@]}"; do printf '%s\t%s\t%s\n' 644 "$built/$unit" "$prefix/lib/systemd/system/$unit"; done
    printf '%s\t%s\t%s\n' 644 Scripts/keychaind.sysusers "$prefix/lib/sysusers.d/keychaind.conf"
    printf '%s\t%s\t%s\n' 644 Scripts/keychaind.tmpfiles "$prefix/lib/tmpfiles.d/keychaind.conf"
    printf '%s\t%s\t%s\n' 644 "$built/pam_keychain.so" "$prefix/lib/security/pam_keychain.so"
    # Where polkit looks. Without polkit or fprintd it has no effect.
    printf '%s\t%s\t%s\n' 644 Scripts/keychain.rules /usr/share/polkit-1/rules.d/50-keychain.rules
    # Where pam-auth-update of Debian looks, and nowhere else.
    [ -z "$destination" ] && [ ! -d /usr/share/pam-configs ] ||
        printf '%s\t%s\t%s\n' 644 "$built/pam-config" /usr/share/pam-configs/keychain
}

# Makes a user of the system, unless there is one of that name.
make_user() {
    getent passwd "$1" >/dev/null ||
        "${as_root[@]}" useradd --system --home-dir "$2" --no-create-home --shell /usr/sbin/nologin --user-group "$1"
}

install_all() {
    local mode source target
    files | while IFS=$'\t' read -r mode source target; do "${as_root[@]}" install -D -m "$mode" "$source" "$destination$target"; done
    echo "Installed keychaind in $destination$prefix."
    [ -z "$destination" ] || return 0
    if command -v systemd-sysusers >/dev/null 2>&1; then
        "${as_root[@]}" systemd-sysusers "$prefix/lib/sysusers.d/keychaind.conf"
    else
        make_user keychain /var/lib/keychain
        make_user keychain-peer /
        make_user keychain-watch /
    fi
    if command -v pam-auth-update >/dev/null 2>&1; then
        echo "To unlock keychains at login, run as root: pam-auth-update --enable keychain"
    else
        echo "To unlock keychains at login, add the module $prefix/lib/security/pam_keychain.so to the configuration of PAM: see \"Unlocking at login\" in the"
        echo "article \"Separating programs with keychaind\"."
    fi
    "${as_root[@]}" install -d -m 755 /run/keychain /etc/keychain /etc/keychain/entitlements.d
    if has_systemd; then
        "${as_root[@]}" systemctl daemon-reload
        "${as_root[@]}" systemctl enable --quiet --now "${sockets[@]}"
        # A new version takes the place of one that runs.
        "${as_root[@]}" systemctl try-restart keychain-peer.service keychaind.service
        # They are parts of the service, whose restart starts them only if they were running.
        if systemctl --quiet is-active keychaind.service; then "${as_root[@]}" systemctl start keychain-watch.service keychain-fingerprint.service; fi
        echo "keychaind starts with the first program that needs it. \`valet daemon adopt\` hands your keychain over to it."
    else
        "${as_root[@]}" install -d -m 700 -o keychain -g keychain /var/lib/keychain
        "${as_root[@]}" chown keychain: /run/keychain
        # Only keychaind can reach the socket in it.
        "${as_root[@]}" install -d -m 710 -o keychain-peer -g keychain /run/keychain-peer
        echo "systemd does not run here. Start keychain-peer and keychaind as root with:"
        echo "  setpriv --reuid keychain-peer --regid keychain-peer --clear-groups --inh-caps -all,+sys_ptrace --ambient-caps -all,+sys_ptrace \\"
        echo "    --bounding-set -all,+sys_ptrace $prefix/libexec/keychain-peer &"
        echo "  setpriv --reuid keychain --regid keychain --clear-groups $prefix/libexec/keychaind &"
    fi
}

# Needs no build products. The keychains stay, and so do the users of the services and the registered programs.
uninstall_all() {
    # Before its file is removed: PAM reports each module that is missing.
    if [ -z "$destination" ] && command -v pam-auth-update >/dev/null 2>&1; then "${as_root[@]}" pam-auth-update --package --remove keychain; fi
    if [ -z "$destination" ] && grep -rqs pam_keychain /etc/pam.d; then
        echo "The module pam_keychain.so is removed, and these files of PAM still name it:"
        grep -rls pam_keychain /etc/pam.d
    fi
    if has_systemd; then "${as_root[@]}" systemctl disable --quiet --now "${sockets[@]}" "${services[@]}" 2>/dev/null || true; fi
    "${as_root[@]}" rm -f "${swift_programs[@]/#/$destination$prefix/libexec/}" "${c_programs[@]/#/$destination$prefix/libexec/}" \
        "$destination$prefix/lib/systemd/user/keychain-agent.service" "${units[@]/#/$destination$prefix/lib/systemd/system/}" \
        "$destination$prefix/lib/sysusers.d/keychaind.conf" "$destination$prefix/lib/tmpfiles.d/keychaind.conf" \
        "$destination$prefix/lib/security/pam_keychain.so" "$destination/usr/share/pam-configs/keychain" \
        "$destination/usr/share/polkit-1/rules.d/50-keychain.rules"
    if has_systemd; then "${as_root[@]}" systemctl daemon-reload; fi
    echo "Removed keychaind from $destination$prefix."
    if [ -z "$destination" ] && "${as_root[@]}" sh -c 'ls -A /var/lib/keychain 2>/dev/null' | grep . >/dev/null; then
        echo "Keychains remain in /var/lib/keychain. Without keychaind their users cannot use them. To give them back, install it again, and run"
        echo "\`valet daemon release\` for each user."
    fi
}

case ${1:-} in
    build) build ;;
    install)
        build
        install_all
        ;;
    uninstall) uninstall_all ;;
    *) echo "Usage: Scripts/install-daemon.sh build|install|uninstall" >&2; exit 2 ;;
esac
