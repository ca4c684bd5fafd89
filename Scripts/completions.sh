#!/usr/bin/env bash
# Writes completion scripts for bash, zsh and fish to .build/completions.
set -euo pipefail
cd "$(dirname "$0")/.."
swift build --product valet
valet=$(swift build --product valet --show-bin-path)/valet
target=$PWD/.build/completions
mkdir -p "$target"
"$valet" --generate-completion-script bash >"$target/valet.bash"
"$valet" --generate-completion-script zsh >"$target/_valet"
"$valet" --generate-completion-script fish >"$target/valet.fish"
echo "Completions: $target"
