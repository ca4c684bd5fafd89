#!/usr/bin/env bash
# Writes the manual pages of `valet` and its subcommands to .build/man, with the plugin of ArgumentParser.
set -euo pipefail
cd "$(dirname "$0")/.."
. Scripts/build-options.sh

target=$PWD/.build/man
mkdir -p "$target"
swift package "${build_options[@]}" --allow-writing-to-directory "$target" generate-manual --multi-page --configuration release --output-directory "$target"
echo "Manual pages: $target. Read one with: man -l $target/valet.1"
# The plugin writes pages for each program that uses ArgumentParser, and keychaind is not installed.
rm -f "$target"/keychaind.1 "$target"/keychaind.*.1
