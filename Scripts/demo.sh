#!/usr/bin/env bash
# Builds `valet`, stores a secret in a throw-away keychain, reads it back, and removes the keychain.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "Building valet (the first time takes a few minutes) ..."
swift build --product valet
valet=$(swift build --product valet --show-bin-path)/valet

# Everything the keychain writes lies below this folder; your own keychain is not touched.
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
    echo "What came back is not what was stored." >&2
    exit 1
fi
if grep -rqa -e 12345 -e Skroob "$KEYCHAIN_HOME"; then
    echo "The secret or its name can be read in the keychain's files." >&2
    exit 1
fi
echo "Stored, read back, and neither the secret nor its name can be read in the keychain's files."
