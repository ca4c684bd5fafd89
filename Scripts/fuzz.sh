#!/usr/bin/env bash
# Fuzzes the parsers of untrusted bytes; the targets are in Fuzz/Targets. `Scripts/fuzz.sh help` describes the commands.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
Scripts/fuzz.sh run [TARGET…]       fuzz each target (default: all) for FUZZ_SECONDS (60) or for FUZZ_RUNS runs
Scripts/fuzz.sh smoke               fuzz each target for three seconds, after checking that a planted fault is found
Scripts/fuzz.sh keep [TARGET…]      copy the smallest set of new inputs with the same coverage to Fuzz/Corpus
Scripts/fuzz.sh targets             list the targets

The build and the inputs that runs generate go to FUZZ_SCRATCH (Fuzz/.build).
TEXT
}

build=${FUZZ_SCRATCH:-Fuzz/.build}
program=$build/release/Fuzz
findings=Fuzz/Findings

build() {
    swift build --package-path Fuzz --scratch-path "$build" -c release --product Fuzz
}

targets() {
    find Fuzz/Corpus -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort
}

# New inputs go to the scratch folder; the corpus of the repository is only read. An input that takes ten seconds or too much memory is a
# finding too. Leaks are not checked, because a system library keeps memory that it allocates once.
fuzz() {
    local target=$1 log=$build/log/$1 length=4096
    shift
    # The time of the argument parser is quadratic in the number of invalid arguments.
    [ "$target" != arguments ] || length=96
    mkdir -p "$build/log" "$build/corpus/$target" "$findings"
    if ! "$program" --target="$target" -detect_leaks=0 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=$length \
        -print_final_stats=1 -artifact_prefix="$findings/$target-" "$@" "$build/corpus/$target" "Fuzz/Corpus/$target" >"$log" 2>&1; then
        tail -n 40 "$log"
        printf '\nFinding in %s. To repeat it: %s --target=%s %s/%s-…\n' "$target" "$program" "$target" "$findings" "$target"
        return 1
    fi
    awk -v target="$target" '
        / cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1); if ($i == "corp:") corp = $(i + 1) } }
        /^Done / { runs = $2; seconds = $5 }
        END { printf "%-16s %10d executions %6d s %8d/s   edges %5d   features %6d   inputs %s\n",
              target, runs, seconds, runs / (seconds > 0 ? seconds : 1), cov, ft, corp }' "$log"
}

# Starts without a corpus. The planted fault needs a record with the right version, kind, count, and node, and nothing after it.
prove() {
    local empty log=$build/log/planted-fault
    empty=$(mktemp -d)
    mkdir -p "$build/log"
    if "$program" --target=constraint --planted-fault=yes -max_total_time=20 -max_len=64 -artifact_prefix="$empty/" "$empty" >"$log" 2>&1 ||
        ! grep -q 'the planted fault' "$log"; then
        tail -n 40 "$log"
        echo "The planted fault was not found, so a clean run would prove nothing. The complete log: $log" >&2
        return 1
    fi
    rm -rf "$empty"
    echo "A planted fault is found."
}

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
    run)
        build
        limit=(-max_total_time="${FUZZ_SECONDS:-60}")
        if [ -n "${FUZZ_RUNS:-}" ]; then limit=(-runs="$FUZZ_RUNS"); fi
        failed=0
        for target in ${@:-$(targets)}; do fuzz "$target" "${limit[@]}" || failed=1; done
        exit $failed
        ;;
    smoke)
        build
        prove
        failed=0
        running=()
        finish() {
            local process
            for process in "${running[@]}"; do wait "$process" || failed=1; done
            running=()
        }
        # Two at a time: each uses one processor.
        for target in $(targets); do
            fuzz "$target" -max_total_time="${FUZZ_SECONDS:-3}" &
            running+=($!)
            [ ${#running[@]} -lt 2 ] || finish
        done
        finish
        exit $failed
        ;;
    keep)
        build
        mkdir -p "$build/log"
        for target in ${@:-$(targets)}; do
            kept=$(mktemp -d)
            # By branches only, not by how often each is taken, so that a few dozen small files cover them all.
            "$program" --target="$target" -set_cover_merge=1 -use_counters=0 -detect_leaks=0 "$kept" "Fuzz/Corpus/$target" \
                "$build/corpus/$target" >"$build/log/keep" 2>&1 || { tail -n 20 "$build/log/keep"; exit 1; }
            # Files with a digest as their name come from runs; people added the others.
            find "Fuzz/Corpus/$target" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
            cp -n "$kept"/* "Fuzz/Corpus/$target/"
            printf '%-16s %4d inputs\n' "$target" "$(find "Fuzz/Corpus/$target" -type f | wc -l)"
            rm -rf "$kept"
        done
        ;;
    targets) targets ;;
    help) usage ;;
    *) usage >&2; exit 2 ;;
esac
