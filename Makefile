# Greenroom. `make` prints what there is.

SWIFT   ?= swift
CONFIG  ?= release
# Static Swift runtime, stripped, unused sections dropped: the smallest daemon that was measured (docs/decisions/0004). And
# all functions bound at the start, so that their addresses are read-only.
STATIC  := --static-swift-stdlib -Xlinker -s -Xlinker --gc-sections -Xlinker -z -Xlinker now
SEED    ?= 1
SEEDS   ?= 1
EVENTS  ?= 100000
SECONDS ?= 60
KILLS   ?= 200
export DESTDIR ?=
export PREFIX ?= /usr
BIN      = $(shell $(SWIFT) build -c $(CONFIG) --show-bin-path)

.DEFAULT_GOAL := help
.PHONY: help deps build programs install deb vm-test demo test check fmt sim sim-ci chaos fuzz bench clean

help: ## prints this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

deps: ## installs the Debian packages that are missing
	@Sources/scripts/deps build

build: deps ## builds the programs (release, static)
	$(SWIFT) build -c $(CONFIG) $(STATIC)

# What is installed, and nothing else; installs no package.
programs:
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomd
	$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomctl

install: ## installs what was built: DESTDIR= PREFIX=/usr
	@packaging/install "$(BIN)"

deb: ## makes the Debian package, and has lintian look at it
	@Sources/scripts/deps build deb
	@packaging/make-deb

vm-test: ## the package in a virtual machine with systemd: VM=path of a program that runs one
	@test -n "$(VM)" || Tests/vm/run
	@Sources/scripts/deps build deb
	@packaging/make-deb
	@$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroom-testapp
	@Tests/vm/run "$(VM)" "$(BIN)"

demo: ## takes real programs through the whole lifecycle, in the terminal
	@Sources/scripts/deps build demo
	@$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomd
	@$(SWIFT) build -c $(CONFIG) $(STATIC) --product greenroomctl
	@Sources/scripts/demo "$(BIN)"

test: deps ## core, simulator, parsers, real kernel, real daemon
	$(SWIFT) build --build-tests
	$(SWIFT) test --skip-build

check: deps ## format, warnings, imports; documents, man pages, completions and packaging against the programs
	@Sources/scripts/check

fmt: ## formats all sources
	$(SWIFT) format -i --configuration .swift-format -r Sources Tests Package.swift

sim: deps ## replays one seed and prints its trace: SEED= EVENTS=
	@$(SWIFT) build -c release --product greenroom-sim 2>&1 | grep -E 'error|warning' || true
	@$$($(SWIFT) build -c release --show-bin-path)/greenroom-sim --seed $(SEED) --seeds $(SEEDS) --events $(EVENTS) $(if $(filter 1,$(SEEDS)),--trace)

sim-ci: deps ## five million events over many seeds, and the core's speed
	$(SWIFT) build -c release --product greenroom-sim
	$$($(SWIFT) build -c release --show-bin-path)/greenroom-sim --seed 1 --seeds 1000 --events 5500
	$$($(SWIFT) build -c release --show-bin-path)/greenroom-sim --rate

chaos: deps ## kills the daemon at random moments, and compares the world before and after: KILLS= SEED=
	$(SWIFT) build --build-tests
	GREENROOM_CHAOS_KILLS=$(KILLS) GREENROOM_CHAOS_SEED=$(SEED) $(SWIFT) test --skip-build --filter ChaosTests

fuzz: deps ## fuzzes the manifest parser: SECONDS=
	@Sources/scripts/fuzz $(SECONDS)

bench: ## measures, each against a peer in the same run: QUICK=1, JSON=1, ONLY=part
	@Sources/scripts/deps build bench
	@for program in greenroomd greenroom-bench greenroom-sim; do \
		$(SWIFT) build -c $(CONFIG) $(STATIC) --product $$program >&2 || exit 1; done
	@Sources/scripts/bench "$(BIN)" $(if $(QUICK),--quick) $(if $(JSON),--json) $(if $(ONLY),--only $(ONLY))

clean: ## removes what was built
	rm -rf .build
