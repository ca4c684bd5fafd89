#!/usr/bin/env bash
# Installs into a throw-away folder, looks at what is there, builds and runs the examples with it, and uninstalls.
set -euo pipefail
cd "$(dirname "$0")/.."

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
fail() { echo "$1" >&2; exit 1; }

# `/opt/valet` is no place where anything is looked for: what runs below was found by what was installed.
export DESTDIR=$stage/root PREFIX=/opt/valet LIBDIR=/opt/valet/lib
Scripts/install.sh install
installed=$DESTDIR$PREFIX

echo "The library shows the functions of valet.h, all of them and nothing else."
# A declaration stands at the start of a line or behind its type; a mention in a comment has a backtick or an asterisk before it.
awk '!/^ *(\/?\*|\*)/ && !/typedef/ && match($0, /valet_[a-z_0-9]+\(/) && !/^#/ { print substr($0, RSTART, RLENGTH - 1) }' \
    "$installed/include/valet.h" | sort >"$stage/declared"
nm -D --defined-only --extern-only "$installed/lib/libvalet.so" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$stage/shown"
[ -s "$stage/declared" ] || fail "valet.h declares nothing."
diff "$stage/declared" "$stage/shown" || fail "The library and its header differ (< declared, > shown)."

echo "It brings Swift's runtime along."
if readelf -d "$installed/lib/libvalet.so" | grep -E 'NEEDED.*(swift|Foundation)'; then fail "It needs libraries of Swift."; fi
readelf -d "$installed/lib/libvalet.so" | grep -q NODELETE || fail "It can be unloaded under threads that have used it."
readelf -d "$installed/lib/libvalet.so" | grep -q 'SONAME.*libvalet.so.0' || fail "It does not bear the name programs look for."

echo "The examples store a secret and read it back."
export PKG_CONFIG_PATH=$installed/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$DESTDIR LD_LIBRARY_PATH=$installed/lib
export KEYCHAIN_HOME=$stage/home KEYCHAIN_PINENTRY=''
mkdir "$KEYCHAIN_HOME" && chmod 700 "$KEYCHAIN_HOME"
read -ra flags <<<"$(pkg-config --cflags --libs valet)"
"${CC:-cc}" -Wall -Wextra -Werror Examples/C/store_secret.c "${flags[@]}" -o "$stage/store_secret"
# A program must not need Swift to be installed, so its libraries are out of reach here.
[ "$(env -i KEYCHAIN_HOME="$KEYCHAIN_HOME" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$stage/store_secret")" = 12345 ] || fail "The example in C failed."
[ "$(python3 Examples/Python/store_secret.py)" = 12345 ] || fail "The example in Python failed."

echo "The installed command reads what the C program stored, and the other way round."
[ "$("$installed/bin/valet" get --app store_secret --identifier Druidia Skroob)" = 12345 ] || fail "The command cannot read it."
"$installed/bin/valet" status >/dev/null
for file in share/man/man1/valet.1 share/bash-completion/completions/valet share/zsh/site-functions/_valet share/fish/vendor_completions.d/valet.fish; do
    [ -s "$installed/$file" ] || fail "There is no $file."
done

Scripts/install.sh uninstall
left=$(find "$DESTDIR" ! -type d)
[ -z "$left" ] || fail "Uninstalling left: $left"
echo "Installed, used, and taken away without a rest."
