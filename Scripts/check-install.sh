#!/usr/bin/env bash
# Installs into a temporary directory, checks the files, builds and runs the examples with them, and uninstalls.
set -euo pipefail
cd "$(dirname "$0")/.."

# Installs the C compiler and the other programs that this script needs, or names their packages.
Scripts/install-dependencies.sh

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
fail() { echo "$1" >&2; exit 1; }

# No program searches `/opt/valet`, so the programs below find only the installed files.
export DESTDIR=$stage/root PREFIX=/opt/valet LIBDIR=/opt/valet/lib
Scripts/install.sh install
installed=$DESTDIR$PREFIX

echo "The library exports exactly the functions of valet.h."
# A declaration is at the start of a line or after its type; in a comment, a backtick or an asterisk precedes the name.
awk '!/^ *(\/?\*|\*)/ && !/typedef/ && match($0, /valet_[a-z_0-9]+\(/) && !/^#/ { print substr($0, RSTART, RLENGTH - 1) }' \
    "$installed/include/valet.h" | sort >"$stage/declared"
nm -D --defined-only --extern-only "$installed/lib/libvalet.so" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$stage/exported"
[ -s "$stage/declared" ] || fail "No function was found in valet.h: correct the pattern in this script, or restore the header."
diff "$stage/declared" "$stage/exported" || fail "The library and its header differ (< declared, > exported): declare each function in valet.h and implement it in Sources/ValetC."

echo "It contains the Swift runtime."
if readelf -d "$installed/lib/libvalet.so" | grep -E 'NEEDED.*(swift|Foundation)'; then fail "The library needs the Swift libraries above: link them statically in Scripts/install.sh."; fi
readelf -d "$installed/lib/libvalet.so" | grep NODELETE >/dev/null || fail "The library can be unloaded while threads that used it are running: link it with -z nodelete in Scripts/install.sh."
readelf -d "$installed/lib/libvalet.so" | grep 'SONAME.*libvalet.so.0' >/dev/null || fail "The soname of the library is not libvalet.so.0: see \`soname\` in Scripts/install.sh."

echo "The examples store a secret and read it back."
export PKG_CONFIG_PATH=$installed/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$DESTDIR LD_LIBRARY_PATH=$installed/lib
export KEYCHAIN_HOME=$stage/home KEYCHAIN_PINENTRY=''
mkdir "$KEYCHAIN_HOME" && chmod 700 "$KEYCHAIN_HOME"
read -ra flags <<<"$(pkg-config --cflags --libs valet)"
"${CC:-cc}" -Wall -Wextra -Werror Examples/C/store_secret.c "${flags[@]}" -o "$stage/store_secret"
# The program must run without an installed Swift, so the environment is empty.
[ "$(env -i KEYCHAIN_HOME="$KEYCHAIN_HOME" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$stage/store_secret")" = 12345 ] || fail "Examples/C/store_secret.c failed: it must print 12345."
[ "$(python3 Examples/Python/store_secret.py)" = 12345 ] || fail "Examples/Python/store_secret.py failed: it must print 12345."

echo "The installed command reads the secret that the C program stored."
[ "$("$installed/bin/valet" get --app store_secret --identifier Druidia Skroob)" = 12345 ] || fail "The installed command cannot read the secret of the C program."
"$installed/bin/valet" status >/dev/null

echo "Two keychains synchronize through a folder."
mkdir -m 700 "$stage/other"
mkdir "$stage/shared"
echo 12345 | "$installed/bin/valet" set --cloud Druidia
"$installed/bin/valet" sync start "$stage/shared" --name one >"$stage/kit" 2>"$stage/messages" || fail "$(cat "$stage/messages")"
"$installed/bin/valet" sync invite --accept-number 2>/dev/null | {
    read -r code
    KEYCHAIN_HOME=$stage/other "$installed/bin/valet" sync join "$stage/shared" --name other --accept-number --code-fd 3 3<<<"$code" 2>"$stage/messages" ||
        fail "The second device did not join, with status $?: $(cat "$stage/messages")"
    cat >/dev/null
}
[ "$(KEYCHAIN_HOME=$stage/other "$installed/bin/valet" get --cloud Druidia)" = 12345 ] || fail "The second device does not have the secret of the first one."

for file in share/man/man1/valet.1 share/man/man1/valet.sync.1 share/man/man1/valet.sync.run.1 share/systemd/user/valet-sync.service share/bash-completion/completions/valet share/zsh/site-functions/_valet share/fish/vendor_completions.d/valet.fish; do
    [ -s "$installed/$file" ] || fail "$file was not installed: see \`files\` in Scripts/install.sh."
done

grep -q 'sync' "$installed/share/bash-completion/completions/valet" || fail "The completions do not have \`valet sync\`."

echo "systemd accepts the unit."
if command -v systemd-analyze >/dev/null 2>&1; then
    # The unit names the command where it would be without DESTDIR.
    sed "s|=$PREFIX/|=$installed/|" "$installed/share/systemd/user/valet-sync.service" >"$stage/valet-sync.service"
    verdict=$(XDG_RUNTIME_DIR=$stage systemd-analyze verify --user --man=no "$stage/valet-sync.service" 2>&1) && [ -z "$verdict" ] ||
        fail "systemd refuses or warns about the unit: $verdict. Correct Scripts/valet-sync.service.in."
else
    echo "systemd-analyze is not installed, so this was not checked."
fi
if [ -x /usr/lib/systemd/systemd ] && [ -s "$stage/valet-sync.service" ] &&
    unshare --mount --pid --fork --mount-proc sh -c 'mount --make-rprivate / && mount -t tmpfs none /run/systemd' 2>/dev/null; then
    echo "The agent of the unit synchronizes, is started again after it was killed, and ends when it is stopped."
    mkdir "$stage/manager"
    Scripts/check-unit.sh "$installed/bin/valet" "$stage/valet-sync.service" "$stage/other" "$stage/manager"
else
    echo "A user manager of systemd cannot be started here, so the unit was not run."
fi

echo "keychaind is installed, and systemd accepts its units."
Scripts/install-daemon.sh install
if command -v systemd-analyze >/dev/null 2>&1; then
    mkdir "$stage/units"
    for unit in "$installed"/lib/systemd/system/keychain*; do sed "s|=$PREFIX/|=$installed/|" "$unit" >"$stage/units/$(basename "$unit")"; done
    verdict=$(systemd-analyze verify --man=no "$stage/units"/* 2>&1) && [ -z "$verdict" ] ||
        fail "systemd refuses or warns about the units: $verdict. Correct Scripts/keychain*.in."
    # Of 100 points of exposure: a service without any restriction has 96.
    for service in keychaind keychain-peer keychain-watch keychain-fingerprint keychain-fprint-digest@; do
        systemd-analyze security --offline=true --threshold=20 --no-pager "$stage/units/$service.service" >"$stage/exposure" 2>&1 ||
            fail "$service is more exposed than it should be: $(cat "$stage/exposure")"
        grep -h 'Overall exposure' "$stage/exposure"
    done
else
    echo "systemd-analyze is not installed, so the units were not checked."
fi
echo "The module for PAM exports its functions only."
exported=$(nm -D --defined-only --extern-only "$installed/lib/security/pam_keychain.so" | awk '{ print $3 }' | sort | tr '\n' ' ')
[ "$exported" = "pam_sm_authenticate pam_sm_chauthtok pam_sm_close_session pam_sm_open_session pam_sm_setcred " ] ||
    fail "The module exports other functions: $exported"
[ -s "$DESTDIR/usr/share/polkit-1/rules.d/50-keychain.rules" ] || fail "The rule of polkit was not installed: see \`files\` in Scripts/install-daemon.sh."
if command -v systemd-sysusers >/dev/null 2>&1; then
    mkdir -p "$stage/users/etc"
    systemd-sysusers --root="$stage/users" "$installed/lib/sysusers.d/keychaind.conf"
    [ "$(grep -c '^keychain\(-peer\|-watch\)\?:' "$stage/users/etc/passwd")" -eq 3 ] || fail "systemd-sysusers does not make the users: see Scripts/keychaind.sysusers."
fi
if [ "$(id -u)" -eq 0 ] && command -v systemd-socket-activate >/dev/null 2>&1 &&
    unshare --mount mount -t tmpfs none /run 2>/dev/null; then
    echo "keychaind uses the socket of systemd, keeps a keychain, and gives it back."
    unshare --mount Scripts/check-daemon.sh "$installed" "$stage/daemon" "$PREFIX" "$DESTDIR/usr/share/pam-configs/keychain"
else
    echo "A private /run cannot be made here, so keychaind was not run."
fi
if [ "$(id -u)" -eq 0 ] && [ -x /lib/systemd/systemd ] &&
    unshare --mount --pid --fork --cgroup sh -c 'mount --make-rprivate / && mount -t tmpfs none /mnt && mount -t cgroup2 none /mnt' 2>/dev/null; then
    echo "systemd runs the services, also while they are replaced."
    Scripts/check-systemd.sh "$DESTDIR" "$PREFIX" "$stage/container"
else
    echo "A container with systemd cannot be made here, so the units were not run."
fi
Scripts/install-daemon.sh uninstall

Scripts/install.sh uninstall
remaining=$(find "$DESTDIR" ! -type d)
[ -z "$remaining" ] || fail "Files remain after uninstalling: $remaining. Add them to \`uninstall_all\` in Scripts/install.sh."
echo "Installed, used, and uninstalled completely."
