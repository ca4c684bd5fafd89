#!/usr/bin/env bash
# Builds and runs the programs in Examples.
#
#     Scripts/check-examples.sh           all except the server
#     Scripts/check-examples.sh server    the server, whose HTTP framework takes four minutes to build
#     Scripts/check-examples.sh fleet     the service of a fleet alone
#
# The builds go to EXAMPLES_SCRATCH (.build/examples) and, for the container, to STATIC_SCRATCH (.build/static). Examples share both, so
# that their dependencies are built once. `make check-install` builds and runs those in C and Python.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=${EXAMPLES_SCRATCH:-.build/examples}
static=${STATIC_SCRATCH:-.build/static}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
fail() { echo "$1" >&2; exit 1; }

# quietly COMMAND: shows the output only if the command fails.
quietly() { "$@" >"$stage/log" 2>&1 || { tail -n 60 "$stage/log" >&2; exit 1; }; }

# The keychain of the examples; the user's is not touched.
export KEYCHAIN_HOME=$stage/home KEYCHAIN_PINENTRY=''
mkdir -m 700 "$KEYCHAIN_HOME"

command_line_tool() {
    echo "CommandLineTool: its tests pass, and the program reads what it stored."
    local options=(--package-path Examples/CommandLineTool --scratch-path "$scratch") luggage
    quietly swift build --build-tests "${options[@]}"
    quietly swift test --skip-build "${options[@]}"
    grep -q 'Test run with 2 tests in 1 suite passed' "$stage/log" || { cat "$stage/log" >&2; exit 1; }
    luggage=$(swift build "${options[@]}" --show-bin-path)/luggage
    [ "$(printf '12345\n' | "$luggage")" = "New combination:" ] || fail "The first run of luggage must ask for a combination."
    [ "$("$luggage")" = "The combination has 5 digits." ] || fail "The second run of luggage must read the combination."
}

sec_item() {
    echo "SecItem: the program stores, reads, and removes a token."
    local options=(--package-path Examples/SecItem --scratch-path "$scratch") token code=0
    quietly swift build "${options[@]}"
    token=$(swift build "${options[@]}" --show-bin-path)/token
    printf first | "$token" save Skroob
    printf swordfish | "$token" save Skroob
    [ "$("$token" read Skroob)" = swordfish ] || fail "token read must print the token that was stored last."
    "$token" remove Skroob
    "$token" read Skroob || code=$?
    [ "$code" = 1 ] || fail "token read must exit with 1 after token remove, and not with $code."
}

# The root file system of the image, without Docker: an ordinary user runs the program in it.
container() {
    echo "Container: an ordinary user runs the program in the root file system of the image."
    local options=(--package-path Examples/Container --scratch-path "$static" -c release --static-swift-stdlib -Xlinker -s)
    local root=$stage/image program output
    quietly swift build "${options[@]}"
    program=$(swift build "${options[@]}" --show-bin-path)/spaceball
    if readelf -d "$program" | grep -E 'NEEDED.*(swift|Foundation)'; then fail "The program needs the Swift libraries above."; fi
    Examples/Container/root-filesystem.sh "$program" "$root"
    head -c 32 /dev/urandom >"$root/run/credentials/keychain-device-secret"
    chmod 400 "$root/run/credentials/keychain-device-secret"
    # Like a container, the program gets /proc. Without it, Swift finds no arguments. Root gives the files to the user of the image; other
    # users become that user in a namespace.
    local mount='mount --rbind /proc "$0/proc" && exec "$@"' inside
    if [ "$(id -u)" = 0 ]; then
        chmod 755 "$stage" "$root"
        chown -R 1000:1000 "$root/var/lib/spaceball" "$root/run/credentials"
        inside=(unshare --mount sh -c "$mount" "$root" chroot --userspec=1000:1000 "$root" /spaceball)
    else
        inside=(
            unshare --user --map-root-user --mount sh -c "$mount" "$root"
            unshare --user --map-user=1000 --map-group=1000 --root="$root" /spaceball
        )
    fi
    # The variables of the image.
    inside=(env -i "PATH=$PATH" $(sed -n 's/^ENV //p' Examples/Container/Dockerfile) "${inside[@]}")
    if output=$("${inside[@]}" 2>&1); then fail "Without a token, spaceball must fail; it printed: $output"; fi
    printf 'swordfish\n' | "${inside[@]}" store
    output=$("${inside[@]}")
    [ "$output" = "Signed in with a token of 9 characters." ] || fail "spaceball must read the token; it printed: $output"
    [ -z "$(find "$root/var/lib/spaceball" -name '*.key')" ] || fail "The key is in the volume, although there is a credential."
    rm "$root/run/credentials/keychain-device-secret"
    if output=$("${inside[@]}" 2>&1); then fail "Without its key, the keychain must not open; spaceball printed: $output"; fi
    echo "The image has $(du -sh --apparent-size "$root" | cut -f 1), $(find "$root" -type f -name '*.so*' | wc -l) of its files are libraries."
}

# A machine with an empty disk joins with a credential, serves, and uses a key that is replaced meanwhile.
fleet() {
    echo "Fleet: a service on an empty disk joins with a credential, and signs."
    local options=(--package-path Examples/Fleet --scratch-path "$scratch") program valet start first
    . Scripts/build-options.sh
    quietly swift build "${build_options[@]}" --product valet
    valet=$(swift build "${build_options[@]}" --show-bin-path)/valet
    quietly swift build "${options[@]}"
    program=$(swift build "${options[@]}" --show-bin-path)/signer
    local owner=$stage/owner machine=$stage/machine
    # in_owner COMMAND: with the keychain of the owner's device.
    in_owner() { KEYCHAIN_HOME=$owner "$@"; }
    store() {
        printf %s "$1" | in_owner "$valet" set signing-key --cloud --app signer --identifier signer --accessibility after-first-unlock
    }
    signature() { printf %s "$1" | openssl dgst -sha256 -hmac "$2" -r | cut -d ' ' -f 1; }
    mkdir -m 700 "$owner" "$machine"
    store swordfish
    quietly in_owner "$valet" sync start "$stage/folder" --name owner
    quietly in_owner "$valet" sync credential create --name signer --valid 1d --output "$stage/credential"
    find "$stage/folder" -type f | sort >"$stage/before"
    start=$(date +%s%N)
    coproc signer { KEYCHAIN_HOME=$machine "$program" "$stage/folder" "$stage/credential" 2>"$stage/signer.log"; }
    local in=${signer[1]} out=${signer[0]} index answer='' process=$signer_PID
    # ask LINE: the signature of the service.
    ask() { printf '%s\n' "$1" >&"$in" && read -r -t 20 answer <&"$out"; }
    ask 'May the Schwartz be with you' || { cat "$stage/signer.log" >&2; fail "signer must answer."; }
    first=$((($(date +%s%N) - start) / 1000000))
    [ "$answer" = "$(signature 'May the Schwartz be with you' swordfish)" ] || fail "signer must sign with the key; it answered: $answer"
    find "$stage/folder" -type f | sort | cmp - "$stage/before" || fail "signer must leave nothing in the folder."
    store marlin
    in_owner "$valet" sync now
    for ((index = 0; index < 200; index++)); do
        ask Vespa
        [ "$answer" != "$(signature Vespa marlin)" ] || break
        sleep 0.1
    done
    [ "$answer" = "$(signature Vespa marlin)" ] || fail "signer must sign with the new key; it answered: $answer"
    eval "exec $in>&-"
    wait "$process"
    sed 's/^/  /' "$stage/signer.log"
    echo "  From the start of the process to its first signature: $first ms."
}

# The server takes its password from the keychain, and a new one while it runs.
server() {
    echo "SecretServer: the server reads its password, and uses a new one."
    local options=(--package-path Examples/SecretServer --scratch-path "$scratch-server") program valet port=18081 index
    . Scripts/build-options.sh
    quietly swift build "${build_options[@]}" --product valet
    valet=$(swift build "${build_options[@]}" --show-bin-path)/valet
    quietly swift build "${options[@]}"
    program=$(swift build "${options[@]}" --show-bin-path)/SecretServer
    store() { printf %s "$1" | "$valet" set database-password --app SecretServer --identifier secret-server --accessibility after-first-unlock; }
    store swordfish
    HTTP_PORT=$port "$program" >"$stage/server.log" 2>&1 &
    local server=$!
    # expect TEXT: waits for this answer, at most 20 seconds.
    expect() {
        for ((index = 0; index < 200; index++)); do
            [ "$(curl --silent "http://127.0.0.1:$port/database")" != "$1" ] || return 0
            sleep 0.1
        done
        kill "$server"
        cat "$stage/server.log" >&2
        fail "SecretServer must answer: $1"
    }
    expect 'connection 1'
    store marlin
    expect 'connection 2'
    kill "$server"
    wait "$server" || true
}

case ${1:-} in
    '')
        command_line_tool
        sec_item
        container
        fleet
        ;;
    server) server ;;
    fleet) fleet ;;
    *) fail "usage: Scripts/check-examples.sh [server|fleet]" ;;
esac
