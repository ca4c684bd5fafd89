#!/usr/bin/env bash
# Checks what a package that uses Valet resolves: the packages that Package.swift names, and the ones that these need. With the trait
# Configuration, swift-configuration is one of them, and with the trait Etcd, gRPC is. A product that does not exist is an error here.
set -euo pipefail
cd "$(dirname "$0")/.."

consumer=$(mktemp -d)
trap 'rm -rf "$consumer"' EXIT
mkdir -p "$consumer/Sources/Consumer"

# check PRODUCTS TRAITS EXPECTED: TRAITS is a part of a Package.swift, EXPECTED the names in the order of their bytes.
check() {
    local products=$1 traits=$2 expected=$3 tree resolved
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
$(printf '                .product(name: "%s", package: "swift-keychain"),\n' $products)
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
        echo "A package that uses $products$traits resolves: $resolved" >&2
        echo "Expected: $expected" >&2
        echo "If the difference is intended, change the list in Scripts/check-dependencies.sh." >&2
        exit 1
    fi
    echo "A package that uses $products$traits resolves $resolved."
}

check 'Valet' '' 'swift-argument-parser swift-asn1 swift-crypto swift-log'
check 'Valet KeychainSync' '' 'swift-argument-parser swift-asn1 swift-crypto swift-log'
check 'Valet ValetConfiguration' ', traits: ["Configuration"]' \
    "swift-argument-parser swift-asn1 swift-async-algorithms swift-collections swift-configuration swift-crypto swift-log swift-service-lifecycle \
swift-system"
check 'Valet KeychainSyncEtcd' ', traits: ["Etcd"]' \
    "SwiftProtobuf grpc-swift-2 grpc-swift-nio-transport swift-algorithms swift-argument-parser swift-asn1 swift-async-algorithms swift-atomics \
swift-certificates swift-collections swift-crypto swift-http-structured-headers swift-http-types swift-log swift-nio swift-nio-extras \
swift-nio-http2 swift-nio-ssl swift-nio-transport-services swift-numerics swift-service-lifecycle swift-system"
