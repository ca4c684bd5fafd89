# Commands for working on this repository. `make` lists them.

SWIFT ?= swift
SOURCES := Package.swift Sources Tests $(wildcard Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests Benchmarks/Consumer/Package.swift Benchmarks/Consumer/Sources Fuzz/Package.swift Fuzz/Targets Examples Bindings/ObjectiveC/Package.swift Bindings/ObjectiveC/Tests)

.PHONY: help demo test check-daemon test-all test-objective-c sanitize build release release-daemon release-secret-service install uninstall install-daemon uninstall-daemon install-secret-service uninstall-secret-service check-c check-install check-examples docs lint format bench compare compare-sync instructions install-peers fuzz sync-planted man completions install-dependencies clean

help:            ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install-dependencies  ## build `valet` (a few minutes the first time), then store and read a secret in a temporary keychain
	@Scripts/demo.sh

test: install-dependencies  ## build and run the tests: about 4 minutes to build the first time, about 1 minute to run
	@Scripts/test.sh

check-daemon: test  ## run `make test`, and the tests of Keychain Services and of Valet once more, through keychaind's protocol
	@bash -c '. Scripts/build-options.sh && KEYCHAIN_TEST_KEYCHAIN=daemon exec $(SWIFT) test --skip-build "$${build_options[@]}" --filter "^(ConformanceTests|ValetTests)\."'

# The build with traits has a scratch path of its own, so that neither build replaces the other.
test-all: check-daemon  ## run `make test`, then everything at full scale with all traits, Objective-C, C, examples, and sanitizers: more than an hour
	@Scripts/install-dependencies.sh etcd
	@KEYCHAIN_TEST_SCALE=full Scripts/test.sh --enable-all-traits --scratch-path .build/with-traits
	@Scripts/objective-c-tests.sh
	@Scripts/check-c.sh
	@Scripts/check-examples.sh
	@Scripts/check-examples.sh server
	@$(MAKE) sync-planted
	@$(SWIFT) run -c release SyncStorm --seeds 20000 --each-state 10
	@$(SWIFT) run -c release SyncStorm --seeds 10000 --removals --devices 4 --events 60
	@$(SWIFT) run -c release SyncStorm --seeds 5000 --benign
	@Scripts/sanitize.sh all

test-objective-c: install-dependencies  ## build and test the Objective-C classes; installs GNUstep
	@Scripts/objective-c-tests.sh

sanitize: install-dependencies  ## run all tests under Thread Sanitizer, then under Address Sanitizer
	@Scripts/sanitize.sh all

build: install-dependencies  ## build everything, including the tests
	$(SWIFT) build --build-tests

release: install-dependencies  ## build `valet` as one file that runs without an installed Swift
	$(SWIFT) build -c release --static-swift-stdlib --product valet -Xlinker -s

install:         ## install `valet`, libvalet.so, valet.h, manual pages, and completions below PREFIX (/usr/local), with DESTDIR before it
	@[ -n "$(DESTDIR)" ] || Scripts/install-dependencies.sh build
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" Scripts/install.sh install

uninstall:       ## remove what `make install` installed with the same PREFIX, LIBDIR, and DESTDIR
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" Scripts/install.sh uninstall

install-daemon:  ## install and start the service keychaind with its helpers and its module for PAM below PREFIX (/usr/local), with DESTDIR before it, as root
	@[ -n "$(DESTDIR)" ] || Scripts/install-dependencies.sh daemon
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" Scripts/install-daemon.sh install

uninstall-daemon:  ## remove what `make install-daemon` installed with the same PREFIX and DESTDIR; keychains stay
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" Scripts/install-daemon.sh uninstall

install-secret-service:  ## install keychain-secret-service, the keyring of desktops, below PREFIX (/usr/local), with DESTDIR before it
	@[ -n "$(DESTDIR)" ] || Scripts/install-dependencies.sh secret-service
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" Scripts/install-secret-service.sh install

uninstall-secret-service:  ## remove what `make install-secret-service` installed with the same PREFIX and DESTDIR
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" Scripts/install-secret-service.sh uninstall

check-c: install-dependencies  ## run the C tests under Valgrind and Address Sanitizer; ROUNDS=10000 runs more rounds
	@Scripts/check-c.sh

check-install: install-dependencies  ## install into a temporary folder, build and run the examples there, uninstall
	@Scripts/check-install.sh

check-examples: install-dependencies  ## build and run the programs in Examples, except the server
	@Scripts/check-examples.sh

docs: install-dependencies  ## build the documentation of all products as a website in .build/docs
	@Scripts/docs.sh

lint:            ## check the formatting of all Swift files
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)

format:          ## format all Swift files
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

bench: release  ## benchmark Valet against an SQLite lookup, fdatasync, and libsecret; BENCH_OPTIONS="--items 1000000" uses more items
	$(SWIFT) run --package-path Benchmarks -c release Benchmarks $(BENCH_OPTIONS)

release-daemon: install-dependencies  ## build `keychaind` as one file that runs without an installed Swift
	$(SWIFT) build -c release --static-swift-stdlib --product keychaind -Xlinker -s

release-secret-service: install-dependencies  ## build `keychain-secret-service` as one file that runs without an installed Swift
	@Scripts/install-secret-service.sh build

# The build comes first, so that nothing else runs during the measurement.
compare: release release-daemon release-secret-service  ## compare Valet with the limits and with other keychains; COMPARE_OPTIONS="--full" adds a million items
	$(SWIFT) build --package-path Benchmarks -c release
	Benchmarks/.build/release/Benchmarks compare $(COMPARE_OPTIONS)

compare-sync: release  ## compare `valet sync` with pass, gopass, and KeePassXC; COMPARE_OPTIONS="--quick" only shows that it works
	$(SWIFT) build --package-path Benchmarks -c release
	Benchmarks/.build/release/Benchmarks compare-sync $(COMPARE_OPTIONS)

instructions: install-dependencies  ## count the instructions of Valet's calls in a release build, with callgrind
	@Scripts/instructions.sh

install-peers:   ## install the other programs that `make compare` and `make compare-sync` measure
	@Scripts/install-peers.sh

fuzz: install-dependencies  ## fuzz all parsers, a minute each; FUZZ_SECONDS=600 for longer, FUZZ_TARGETS="row secitem" for some
	@Scripts/fuzz.sh run $(FUZZ_TARGETS)

# The faults are compiled in only here, so the build has a scratch path of its own.
sync-planted:    ## prove that SyncStorm finds every fault that is planted in the engine of synchronization
	$(SWIFT) run -c release --scratch-path .build-planted -Xswiftc -DSYNC_PLANTED SyncStorm --planted

man: install-dependencies  ## write the manual pages to .build/man
	@Scripts/man.sh

completions: install-dependencies  ## write completions for bash, zsh, and fish to .build/completions
	@Scripts/completions.sh

install-dependencies:  ## install the system packages for building and testing
	@Scripts/install-dependencies.sh

clean:           ## remove all build products
	$(SWIFT) package clean
