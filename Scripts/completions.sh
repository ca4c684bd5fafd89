#!/usr/bin/env bash
# Writes completion scripts for bash, zsh and fish to .build/completions.
# Arguments are the options of a build to use, instead of that of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. Scripts/build-options.sh
[ $# -eq 0 ] || build_options=("$@")

swift build "${build_options[@]}" --product valet
valet=$(swift build "${build_options[@]}" --product valet --show-bin-path)/valet
target=$PWD/.build/completions
mkdir -p "$target"
"$valet" --generate-completion-script bash >"$target/valet.bash"
"$valet" --generate-completion-script zsh >"$target/_valet"
"$valet" --generate-completion-script fish >"$target/valet.fish"
echo "Completions: $target"
