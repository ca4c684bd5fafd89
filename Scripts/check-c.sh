#!/usr/bin/env bash
# Runs the C tests under Valgrind and Address Sanitizer. ROUNDS sets the number of rounds of the growth case.
set -euo pipefail
cd "$(dirname "$0")/.."
. Scripts/build-options.sh

# Installs Valgrind, or names its package.
Scripts/install-dependencies.sh

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
run() { mkdir -p -m 700 "$home/$1" && KEYCHAIN_HOME="$home/$1" KEYCHAIN_PINENTRY='' "${@:2}"; }

# Proves that an instrument finds planted faults; otherwise its clean report would mean nothing.
prove() {
    local fault
    for fault in planted-leak planted-use-after-free; do
        if "$1" "$2" "$fault" >"$home/log" 2>&1 || ! grep -qE 'definitely lost|LeakSanitizer|Invalid read|heap-use-after-free' "$home/log"; then
            tail -n 20 "$home/log"
            echo "The planted fault $fault was not found, so a clean report would prove nothing. The end of the report is above." >&2
            return 1
        fi
    done
    echo "The planted faults were found."
}

bin_path() { swift build "$@" --show-bin-path; }

valgrind_run() {
    local bin
    swift build "${build_options[@]}" --product CValetTestProgram
    bin=$(bin_path "${build_options[@]}")
    # Valgrind 3.19 cannot read the compiler's debug information. The names of functions remain.
    strip --strip-debug -o "$bin/CValetTestProgram.stripped" "$bin/CValetTestProgram"
    echo "Under Valgrind:"
    prove under_valgrind "$bin"
    under_valgrind "$bin" all "${ROUNDS:-1000}"
}

under_valgrind() {
    # A forked child has the memory of threads that do not exist in it, which would be reported as leaks.
    run valgrind valgrind --quiet --child-silent-after-fork=yes --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --suppressions=Tests/CValetTestProgram/valgrind.supp --num-callers=30 \
        "$1/CValetTestProgram.stripped" "${@:2}"
}

sanitizer_run() {
    local bin options=(--sanitize=address --scratch-path .build/check-c)
    swift build "${options[@]}" --product CValetTestProgram
    bin=$(bin_path "${options[@]}")
    echo "Under Address Sanitizer, with its leak check:"
    prove under_sanitizer "$bin"
    under_sanitizer "$bin" all "${ROUNDS:-10000}"
}

under_sanitizer() {
    run address env ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 \
        LSAN_OPTIONS=suppressions="$PWD/Tests/CValetTestProgram/leaks.supp":print_suppressions=0 \
        "$1/CValetTestProgram" "${@:2}"
}

case ${1:-all} in
    valgrind) valgrind_run ;;
    sanitizer) sanitizer_run ;;
    all)
        valgrind_run
        sanitizer_run
        ;;
    *) echo "Usage: Scripts/check-c.sh [valgrind|sanitizer]" >&2; exit 2 ;;
esac
