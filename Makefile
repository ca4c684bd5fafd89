# Short names for what one does with this repository. `make` alone lists them.

SWIFT ?= swift
SOURCES := Package.swift Sources Tests $(wildcard Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests Fuzz/Package.swift Fuzz/Targets Examples Bindings/ObjectiveC/Package.swift Bindings/ObjectiveC/Tests)

.PHONY: help demo test test-objective-c sanitize build release install uninstall check-c check-install lint format bench compare install-peers fuzz man completions install-dependencies clean

help:            ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install-dependencies  ## store a secret and read it back, in a throw-away keychain
	@Scripts/demo.sh

# What needs a TPM is built apart, so that neither build takes the other's place. The filter names those suites: all others are the same.
test: install-dependencies  ## run all tests: those of the trait TPM, on a TPM in software, and then everything without it; Objective-C first
	@Scripts/objective-c-tests.sh
	$(SWIFT) test --traits TPM --scratch-path .build/with-TPM --filter 'TPM|Protector|Recovery'
	$(SWIFT) test

test-objective-c: install-dependencies  ## test the classes for Objective-C alone; this installs GNUstep
	@Scripts/objective-c-tests.sh

sanitize: install-dependencies  ## run all tests under Thread Sanitizer, and then under Address Sanitizer
	@Scripts/sanitize.sh all

build: install-dependencies  ## build everything, tests too
	$(SWIFT) build --build-tests

release: install-dependencies  ## build one `valet` file that runs where no Swift is installed
	$(SWIFT) build -c release --static-swift-stdlib --product valet -Xlinker -s

install:         ## put `valet`, libvalet.so, valet.h, manual pages and completions below PREFIX (/usr/local), in front of it DESTDIR
	@[ -n "$(DESTDIR)" ] || Scripts/install-dependencies.sh build
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" Scripts/install.sh install

uninstall:       ## take away what `make install` put there, with the same PREFIX, LIBDIR and DESTDIR
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" Scripts/install.sh uninstall

check-c: install-dependencies  ## run the tests in C under Valgrind and the address sanitizer; ROUNDS=10000 for more rounds
	@Scripts/check-c.sh

check-install: install-dependencies  ## install into a throw-away folder, build and run the examples there, uninstall
	@Scripts/check-install.sh

lint:            ## check the style of every Swift file
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)

format:          ## put every Swift file into the style
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

bench: release  ## measure, beside a raw SQLite lookup, a bare fdatasync and libsecret; BENCH_OPTIONS="--items 1000000" for more
	$(SWIFT) run --package-path Benchmarks -c release Benchmarks $(BENCH_OPTIONS)

# Build first: the run should have the machine to itself.
compare: release  ## set Valet beside the limits and other keychains: table, JSON and chart; COMPARE_OPTIONS="--full" for a million items
	$(SWIFT) build --package-path Benchmarks -c release
	Benchmarks/.build/release/Benchmarks compare $(COMPARE_OPTIONS)

install-peers:   ## install the other keychains that `make compare` measures, where they can be had
	@Scripts/install-peers.sh

fuzz: install-dependencies  ## fuzz what reads bytes that others wrote; FUZZ_SECONDS=600 for more than a minute each, FUZZ_TARGETS="row secitem" for some
	@Scripts/fuzz.sh run $(FUZZ_TARGETS)

man: install-dependencies  ## write the manual pages to .build/man
	@Scripts/man.sh

completions: install-dependencies  ## write completions for bash, zsh and fish to .build/completions
	@Scripts/completions.sh

install-dependencies:  ## install the system packages that building and testing need
	@Scripts/install-dependencies.sh

clean:           ## remove everything that was built
	$(SWIFT) package clean
