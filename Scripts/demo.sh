#!/usr/bin/env bash
# Builds `valet`, stores a secret in a temporary keychain, reads it back, and removes the keychain.
set -euo pipefail
cd "$(dirname "$0")/.."

. Scripts/build-options.sh

echo "Building valet (the first time takes a few minutes) ..."
swift build "${build_options[@]}" --product valet
valet=$(swift build "${build_options[@]}" --product valet --show-bin-path)/valet

# The keychain writes to this directory only; the user's keychain is not touched.
KEYCHAIN_HOME=$(mktemp -d)
export KEYCHAIN_HOME
trap 'rm -rf "$KEYCHAIN_HOME"' EXIT

show() { printf '\n$ %s\n' "$1"; }

show "printf 12345 | valet set Skroob"
printf 12345 | "$valet" set Skroob

show "valet list"
"$valet" list

show "valet get Skroob"
secret=$("$valet" get Skroob)
echo "$secret"

show "valet status"
"$valet" status

echo
if [ "$secret" != 12345 ]; then
    echo "The secret that was read differs from the one that was stored." >&2
    exit 1
fi
if grep -rqa -e 12345 -e Skroob "$KEYCHAIN_HOME"; then
    echo "The files of the keychain contain the secret or its name in plain text." >&2
    exit 1
fi
echo "Stored and read back. The files of the keychain contain neither the secret nor its name in plain text."
