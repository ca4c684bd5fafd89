#!/usr/bin/env bash
# Checks what a package that uses Valet resolves: the packages that Package.swift names, and the ones that these need. With the trait
# Configuration, swift-configuration is one of them. A product that does not exist is an error here.
set -euo pipefail
cd "$(dirname "$0")/.."

consumer=$(mktemp -d)
trap 'rm -rf "$consumer"' EXIT
mkdir -p "$consumer/Sources/Consumer"

# check TRAITS EXPECTED PRODUCT: TRAITS and PRODUCT are parts of a Package.swift, EXPECTED the names in alphabetical order.
check() {
    local traits=$1 expected=$2 product=$3 tree resolved
    # The package is named after its folder, which may have any name.
    cat >"$consumer/Package.swift" <<TEXT
// swift-tools-version: 6.2
import PackageDescription
let package = Package(
    name: "consumer", platforms: [.macOS(.v13)], dependencies: [.package(name: "swift-keychain", path: "$PWD"$traits)],
    targets: [
        .target(
            name: "Consumer",
            dependencies: [
                .product(name: "Valet", package: "swift-keychain"), $product
                .product(name: "Security", package: "swift-keychain", condition: .when(platforms: [.linux])),
            ]
        )
    ]
)
TEXT
    echo 'import Valet' >"$consumer/Sources/Consumer/Consumer.swift"
    tree=$(swift package --package-path "$consumer" show-dependencies --format json 2>"$consumer/log") || { cat "$consumer/log" >&2; exit 1; }
    resolved=$(python3 -c '
import json, sys
def names(package):
    for dependency in package["dependencies"]:
        yield dependency["name"]
        yield from names(dependency)
print(*sorted(set(names(json.load(sys.stdin))) - {"swift-keychain"}))' <<<"$tree")
    if [ "$resolved" != "$expected" ]; then
        echo "A package that uses Valet$traits resolves: $resolved" >&2
        echo "Expected: $expected" >&2
        echo "If the difference is intended, change the list in Scripts/check-dependencies.sh." >&2
        exit 1
    fi
    echo "A package that uses Valet$traits resolves $resolved."
}

check '' 'swift-argument-parser swift-asn1 swift-crypto swift-log' ''
check ', traits: ["Configuration"]' \
    "swift-argument-parser swift-asn1 swift-async-algorithms swift-collections swift-configuration swift-crypto swift-log swift-service-lifecycle \
swift-system" \
    '.product(name: "ValetConfiguration", package: "swift-keychain"),'
