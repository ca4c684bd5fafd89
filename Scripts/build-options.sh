# Options of `swift build` and `swift test` for the build that the tests, the demo, and the C checks share. Source this file.
#
# Swift is not optimized, so the tests build as fast as in a debug build. C is: scrypt and SQLite's checksums take a third of the time of an
# unoptimized build. Without the definition DEBUG, swift-argument-parser does not validate all declarations at each start, which is 40 % of
# the run time of a short command. The tests start `valet` about 900 times. Together this saves a quarter of the time of `make test`.
build_options=(
    --scratch-path .build/tests -c release
    -Xswiftc -Onone -Xswiftc -enable-testing
    # Compiles only the changed files of a module.
    -Xswiftc -no-whole-module-optimization -Xswiftc -enable-batch-mode
)
