#!/usr/bin/env bash
# Generates Sources/KeychainSyncEtcd/Messages/etcd.pb.swift from etcd.proto, with protoc (Debian: protobuf-compiler) and the plugin of the
# package swift-protobuf, which this builds (about five minutes the first time). Only a change of etcd.proto needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=.build/with-traits
swift package --scratch-path "$scratch" --traits Etcd resolve
checkout=$scratch/checkouts/swift-protobuf
swift build --package-path "$checkout" --scratch-path .build/protoc -c release --product protoc-gen-swift
plugin=$(swift build --package-path "$checkout" --scratch-path .build/protoc -c release --show-bin-path)/protoc-gen-swift
folder=Sources/KeychainSyncEtcd/Messages
protoc --plugin=protoc-gen-swift="$plugin" --proto_path="$folder" --swift_out="$folder" --swift_opt=Visibility=Internal \
    --swift_opt=UseAccessLevelOnImports=true etcd.proto
# The first line names the license; `#if` leaves an empty file without the trait.
file=$folder/etcd.pb.swift
{
    echo '// SPDX-License-Identifier: Apache-2.0'
    echo '// swift-format-ignore-file'
    echo '#if Etcd && !canImport(Darwin)'
    # Without the comment of etcd.proto, and with the reason that a check of this package demands.
    sed -e '/^\/\/\/ SPDX-License-Identifier/,/^$/d' \
        -e 's|{ preconditionFailure() }$|&  // Not reached: the same case was matched before.|' "$file"
    echo '#endif'
} >"$file.new"
mv "$file.new" "$file"
