#!/usr/bin/env bash
# Runs the C tests under Valgrind and under the address sanitizer. ROUNDS=10000 is how often growth is tried.
set -euo pipefail
cd "$(dirname "$0")/.."

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
run() { mkdir -p "$home/$1" && KEYCHAIN_HOME="$home/$1" KEYCHAIN_PINENTRY='' "${@:2}"; }
bin_path() { swift build "$@" --show-bin-path; }

valgrind_run() {
    local bin
    swift build --product CValetTestProgram
    bin=$(bin_path)
    # Valgrind 3.19 gives up on what the compiler writes for debuggers; names of functions stay.
    strip --strip-debug -o "$bin/CValetTestProgram.stripped" "$bin/CValetTestProgram"
    echo "Under Valgrind:"
    run valgrind valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --suppressions=Tests/CValetTestProgram/valgrind.supp --num-callers=30 \
        "$bin/CValetTestProgram.stripped" all "${ROUNDS:-1000}"
}

sanitizer_run() {
    local bin options=(--sanitize=address --scratch-path .build/with-address-sanitizer)
    swift build "${options[@]}" --product CValetTestProgram
    bin=$(bin_path "${options[@]}")
    echo "Under the address sanitizer, with leaks:"
    run address env ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 \
        LSAN_OPTIONS=suppressions="$PWD/Tests/CValetTestProgram/leaks.supp":print_suppressions=0 \
        "$bin/CValetTestProgram" all "${ROUNDS:-10000}"
}

case ${1:-all} in
    valgrind) valgrind_run ;;
    sanitizer) sanitizer_run ;;
    all) valgrind_run && sanitizer_run ;;
    *) echo "Scripts/check-c.sh [valgrind|sanitizer]" >&2; exit 2 ;;
esac
