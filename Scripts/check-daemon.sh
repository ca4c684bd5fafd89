#!/usr/bin/env bash
# Runs an installed keychaind with a socket that systemd has made, in a mount namespace, and hands a keychain over to it and back.
#
#   unshare --mount Scripts/check-daemon.sh INSTALLED FOLDER
#
# INSTALLED is the prefix with its staging directory, and FOLDER does not exist yet. Needs root.
set -euo pipefail

fail() { echo "$1" >&2; exit 1; }

installed=$1 folder=$2
mount --make-rprivate /
mount -t tmpfs -o mode=755 none /run
mkdir -m 755 /run/keychain
mkdir -m 700 "$folder" "$folder/home" "$folder/kept"
export KEYCHAIN_HOME=$folder/home
valet=$installed/bin/valet

start() {
    systemd-socket-activate --seqpacket --listen=/run/keychain/keychaind.sock \
        "$installed/libexec/keychaind" --socket=/nowhere/socket --directory="$folder/kept" 2>>"$folder/log" &
    service=$!
    for _ in $(seq 100); do [ ! -S /run/keychain/keychaind.sock ] || break; sleep 0.1; done
}
stop() {
    kill $service
    wait $service 2>/dev/null || true
    rm -f /run/keychain/keychaind.sock
}
trap 'kill $service 2>/dev/null || true' EXIT

start
echo 12345 | "$valet" set luggage
"$valet" daemon adopt >/dev/null || fail "The keychain was not handed over: $(cat "$folder/log")"
[ "$("$valet" get luggage)" = 12345 ] || fail "keychaind does not have the secret."
head -n 1 "$folder/home/keychain.db" | grep -q '^keychaind signpost' || fail "There is no signpost."
stop
! "$valet" get luggage >/dev/null 2>&1 || fail "Without keychaind the secret was read."
start
echo 54321 | "$valet" set luggage
"$valet" daemon release >/dev/null || fail "The keychain was not given back: $(cat "$folder/log")"
stop
[ "$("$valet" get luggage)" = 54321 ] || fail "The keychain that was given back lacks a change."
