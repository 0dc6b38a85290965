# Greenroom. `make` prints the targets.

SWIFT   ?= swift
CONFIG  ?= release
# Links the Swift runtime statically, strips symbols and removes unused sections (docs/decisions/project.md compares the sizes), so it
# compiles no debug information. `-z now` resolves all symbols at the start, so that their table is read-only afterwards.
STATIC  := --static-swift-stdlib -debug-info-format none -Xlinker -s -Xlinker --gc-sections -Xlinker -z -Xlinker now
SEED    ?= 1
SEEDS   ?= 1
EVENTS  ?= 100000
SECONDS ?= 60
KILLS   ?= 200
# The program that starts a virtual machine for vm-test.
VM      ?= Tests/vm/machine
# Prints what a part of the tests took.
TIMED   := Sources/scripts/timed
export DESTDIR ?=
export PREFIX ?= /usr
BIN      = $(shell $(SWIFT) build -c $(CONFIG) --show-bin-path)

.DEFAULT_GOAL := help
.PHONY: help deps build programs libgreenroom session install install-exporter install-session deb vm-test demo test test/swift test/others test-all test-c test-python test-swift check rules fmt sim sim-ci sim-memory chaos soak fuzz bench bench-record bench-check bench-baseline bench-memory freeze-map clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

deps: ## install missing Debian packages
	@Sources/scripts/deps build

build: deps ## build all programs (release, statically linked Swift runtime); .build/bin has them
	$(SWIFT) build -c $(CONFIG) $(STATIC)
	@mkdir -p .build/bin
	@for program in greenroomd greenroomctl greenroom-exporter; do ln -sfn "$(BIN)/$$program" .build/bin/$$program; done
	@packaging/build-libgreenroom .build/lib
	@echo 'Add the programs to PATH:  export PATH="$$PWD/.build/bin:$$PATH"'

# Builds only the programs that are installed, and installs no Debian packages.
programs:
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomd
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomctl
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroom-exporter
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroom-top
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroom-run

libgreenroom: ## build the C library: .build/lib/libgreenroom.so.1
	@packaging/build-libgreenroom .build/lib

session: ## build greenroom-session, which needs PipeWire: .build/session/greenroom-session
	@Sources/scripts/deps session
	@packaging/build-session .build/session

install: ## install the built programs and libraries: DESTDIR= PREFIX=/usr
	@packaging/install "$(BIN)"

install-exporter:
	@packaging/install-exporter "$(BIN)"

install-session: ## install the built greenroom-session: DESTDIR= PREFIX=/usr
	@packaging/install-session .build/session

deb: ## build the Debian package and check it with lintian
	@Sources/scripts/deps build deb
	@$(MAKE) --silent programs
	@packaging/make-deb "$(BIN)"

# A package that is only tested is packed fast (dpkg-deb(1)): the default takes half a minute, and is slow to unpack on an emulated processor.
vm-test: export DPKG_DEB_COMPRESSOR_TYPE = gzip
vm-test: export DPKG_DEB_COMPRESSOR_LEVEL = 1
vm-test: deb ## test the package in a virtual machine with systemd: PHASES= VM=path of another program that starts one
	@$(if $(filter Tests/vm/machine,$(VM)),Sources/scripts/deps vm)
	@$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroom-testapp
	@Tests/vm/run "$(VM)" "$(BIN)" $(PHASES)

demo: ## run real programs through the whole lifecycle, in the terminal
	@Sources/scripts/deps build demo
	@$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomd
	@$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomctl
	@Sources/scripts/demo "$(BIN)"

test: deps ## run the unit and integration tests, and every command of the documents
	@Sources/scripts/deps clients documents $(if $(filter 0,$(shell id -u)),examples $(if $(GREENROOM_TEST_ALL),slow-examples metrics))
	@$(if $(GREENROOM_TEST_ALL),Sources/scripts/perfetto-classes .build/perfetto)
	@$(TIMED) test/build $(SWIFT) build --build-tests
	@$(MAKE) --no-print-directory --jobs=$(if $(GREENROOM_TEST_ALL),1,2) test/swift test/others

test/swift:
	@SWIFT="$(SWIFT)" $(TIMED) test/swift Sources/scripts/test

# Runs beside the Swift tests: both wait most of their time. Those of test-all compute, and Java is not idle beside them.
test/others: BINDIR = $(shell $(SWIFT) build --show-bin-path)
test/others:
	@$(TIMED) test/documents Tests/documents/run "$(BINDIR)"
	@$(TIMED) test/examples Tests/examples/run "$(BINDIR)"
	@$(TIMED) test/apps Tests/examples/apps "$(BINDIR)"
	@$(TIMED) test/clibrary Tests/clibrary/run
	@$(TIMED) test/python $(MAKE) --no-print-directory test-python
	@$(TIMED) test/contract Tests/contract/swift/run "$(BINDIR)"
	@BINDIR="$(BINDIR)" $(TIMED) test/shell Tests/contract/run shell
	@$(if $(GREENROOM_TEST_ALL),$(TIMED) test/sway Tests/examples/sway "$(BINDIR)")
	@$(if $(GREENROOM_TEST_ALL),$(TIMED) test/session Tests/session/run "$(BINDIR)")

# Without the variable the tests leave out what is large, long or random (docs/HACKING.md).
test-all: export GREENROOM_TEST_ALL = 1
test-all: export GREENROOM_PERFETTO_PYTHON = $(CURDIR)/.build/perfetto/bin/python3
test-all: test ## run all tests, also those that are large, long or random

test-python: ## test the Python library, with a fake daemon
	@Tests/python/run
	@Tests/contract/run

test-c: ## test the C library, with a fake daemon
	@Tests/contract/run c
	@Tests/clibrary/run

test-swift: deps ## test the Swift library, with a fake daemon
	$(SWIFT) build --build-tests
	@$(SWIFT) test --skip-build --filter GreenroomTests
	@Tests/contract/swift/run "$$($(SWIFT) build --show-bin-path)"

check: deps ## check format, warnings, imports, function lengths, wording, documents, man pages and packaging
	@Sources/scripts/check

rules: ## print how many tests show each rule of docs/RULES.md; with RULE=L12, the names of its tests
	@Sources/scripts/rules $(RULE)

fmt: ## format all Swift sources
	$(SWIFT) format -i --configuration .swift-format -r Sources Tests Package.swift

sim: deps ## run the simulator and print the trace of a seed: SEED= SEEDS= EVENTS=
	@$(SWIFT) build -c release $(STATIC) --product greenroom-sim 2>&1 | grep -E 'error|warning' || true
	@$$($(SWIFT) build -c release --show-bin-path)/greenroom-sim --seed $(SEED) --seeds $(SEEDS) --events $(EVENTS) $(if $(filter 1,$(SEEDS)),--trace)

sim-ci: deps ## run the simulator on all processors with saved and fresh seeds, and measure the core's event rate: SECONDS=
	$(SWIFT) build -c release $(STATIC) --product greenroom-sim
	@Sources/scripts/sim-ci "$$($(SWIFT) build -c release --show-bin-path)" $(SECONDS)

sim-memory: deps ## print what each JetsamOrder= costs on simulated machines; with SEED=, check random machines: SEEDS=
	@$(SWIFT) build -c release $(STATIC) --product greenroom-sim 2>&1 | grep -E 'error|warning' || true
	@$$($(SWIFT) build -c release --show-bin-path)/greenroom-sim memory $(if $(filter-out file,$(origin SEED)),--seed $(SEED) --seeds $(SEEDS))

chaos: deps ## kill the daemon at random times and check that all apps are unaffected: KILLS= SEED=
	$(SWIFT) build --build-tests
	GREENROOM_CHAOS_KILLS=$(KILLS) GREENROOM_CHAOS_SEED=$(SEED) $(SWIFT) test --skip-build --filter ChaosTests

soak: deps ## repeat the tests under load, fresh seeds and chaos, until a failure; resumable: MINUTES=60 PARTS= SEEDS= KILLS=
	$(SWIFT) build --build-tests
	$(SWIFT) build -c release $(STATIC) --product greenroom-sim
	@Sources/scripts/soak "$$($(SWIFT) build -c release --show-bin-path)"

fuzz: deps ## fuzz the manifest parser: SECONDS=
	@Sources/scripts/fuzz $(SECONDS)

bench: ## measure greenroomd and comparable programs: QUICK=1 JSON=1 ONLY=part APPS=n MINUTES=n
	@Sources/scripts/deps build bench
	@for program in greenroomd greenroom-bench greenroom-sim; do \
		$(SWIFT) build -c $(CONFIG) $(STATIC) --product $$program >&2 || exit 1; done
	@Sources/scripts/bench "$(BIN)" $(if $(QUICK),--quick) $(if $(JSON),--json) $(if $(ONLY),--only $(ONLY)) \
		$(if $(APPS),--apps $(APPS)) $(if $(MINUTES),--minutes $(MINUTES))

bench-record: ## measure what make bench measures, or ONLY=waking or hosting, record it in docs/bench and write BENCH.md's tables
	@Sources/scripts/deps build bench
	@for program in greenroomd greenroom-bench greenroom-sim; do \
		$(SWIFT) build -c $(CONFIG) $(STATIC) --product $$program >&2 || exit 1; done
	@Sources/scripts/bench "$(BIN)" $(if $(ONLY),--only $(ONLY)) --record docs/bench/run$(if $(ONLY),-$(ONLY)).json
	@$(TABLES)

# Writes what was recorded into the page.
TABLES = "$(BIN)/greenroom-bench" tables docs/bench/run*.json docs/bench/*.txt docs/BENCH.md

# Builds the programs that bench-check and bench-baseline measure with.
BENCH_CHECK = @Sources/scripts/deps build; for program in greenroomd greenroom-bench; do \
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product $$program >&2 || exit 1; done; \
	Sources/scripts/bench "$(BIN)"

bench-check: ## compare launches, wakes, deadlines, memory and the core with docs/bench/baseline.json, in about 2 minutes
	$(BENCH_CHECK) --check docs/bench/baseline.json

bench-baseline: ## measure the same and write docs/bench/baseline.json
	$(BENCH_CHECK) --baseline docs/bench/baseline.json

bench-memory: deb ## compare kills for memory with earlyoom, nohang, systemd-oomd and the kernel in virtual machines: VM= ROUNDS=20 RECORD=1
	@$(if $(filter Tests/vm/machine,$(VM)),Sources/scripts/deps vm)
	@Tests/vm/killers/run "$(VM)" "$(or $(ROUNDS),20)" $(if $(RECORD),>docs/bench/killers.txt && cat docs/bench/killers.txt)
	@$(if $(RECORD),$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroom-bench && $(TABLES))

freeze-map: ## freeze and wake unmodified programs under traffic and compare every byte: ROUNDS=1000 JOBS=n ONLY=program WRITE=1 SITUATIONS=1 MINUTES=60 KILL=20
	@Sources/scripts/deps build freeze-map $(if $(MINUTES),idle-hour)
	@for program in greenroomd greenroomctl; do $(SWIFT) build -c $(CONFIG) $(STATIC) --product $$program >&2 || exit 1; done
	@Sources/scripts/freeze-map "$(BIN)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(SITUATIONS),--situations) $(if $(MINUTES),--idle $(MINUTES)) $(if $(KILL),--kill $(KILL)) $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write)

clean: ## remove all build results
	rm -rf .build
