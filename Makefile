# Two commands for a new user: `make run` and `make test`. Each sets up what it needs first.

CARGO ?= cargo
WIRETAX = target/release/wiretax
# Seconds that each fuzz target runs in `make fuzz`, and in CI.
FUZZ_SECONDS ?= 300
FUZZ_SMOKE_SECONDS = 3
# How often `make soak` runs each of its tests.
SOAK ?= 50
# What `make drivers` builds: names, beginnings with a star, `default` or `all`.
DRIVERS ?= default
# How `make query` builds: release, or dev, which CI has at hand.
PROFILE ?= release
BUILT = target/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

.PHONY: help run test lint build drivers guest guest-test fmt clippy deny doc unit query bench bench-smoke soak fuzz fuzz-smoke figures install static package clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

run: ## measure with every study at a quick scale (4 minutes at most) and write a report
	@scripts/setup.sh run
	$(CARGO) build --release --locked -p cli
	$(WIRETAX) run

test: ## formatting and all tests (under 20 minutes from nothing on two processors)
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory fmt unit
	@echo 'make test: passed'

lint: fmt clippy doc ## formatting, clippy and documentation (9 minutes from nothing)

build: ## the program, optimised
	@scripts/setup.sh run
	$(CARGO) build --release --locked -p cli

query: ## the program with its SQL engine, for `wiretax observe query` (some 20 minutes from nothing)
	@scripts/setup.sh run
	$(CARGO) build --profile $(PROFILE) --locked -p cli --features query
	@ln -f $(BUILT)/wiretax $(BUILT)/wiretax-query
	@echo 'The program with its SQL engine: $(BUILT)/wiretax-query observe query RECORDS'

drivers: ## the TLS libraries that `wiretax stacks` measures (a quarter of an hour; DRIVERS=all for the rest)
	@scripts/setup.sh drivers
	$(CARGO) build --release --locked -p cli
	$(WIRETAX) drivers build $(DRIVERS)

guest: ## QEMU and Debian's kernel for `--clock virtual` (some 50 MB of packages, unpacked into a cache)
	@scripts/setup.sh guest
	$(CARGO) build --release --locked -p cli
	$(WIRETAX) guest fetch

guest-test: guest ## the tests that need a guest (some minutes), and what they need more
	$(WIRETAX) guest fetch --with daemons
	$(CARGO) test --workspace --locked --test guest

fmt:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

deny: ## licences, sources and known vulnerabilities of the dependencies
	scripts/deny.sh

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --document-private-items --locked --quiet

unit: ## the tests, and which of them were skipped; WIRETAX_REQUIRE=all: none may be
	@CARGO='$(CARGO)' scripts/unit.sh

bench-smoke: # every benchmark once, so that none rots
	$(CARGO) test --workspace --bench '*' --locked --quiet

bench: ## the benchmarks (BENCHMARKING.md says how to read them)
	$(CARGO) bench --workspace --locked

soak: ## the tests that use the lab, the clock or programs, SOAK (50) times beside a busy machine
	scripts/soak.sh $(SOAK)

fuzz-smoke: # every fuzz target for a few seconds
	scripts/fuzz.sh $(FUZZ_SMOKE_SECONDS)

fuzz: ## each fuzz target for FUZZ_SECONDS (300)
	@scripts/setup.sh test
	scripts/fuzz.sh $(FUZZ_SECONDS)

# The studies with committed results, each with a page of its own beside them.
STUDIES = handshake observe link page roam stacks
# Pages with figures of results that README.md has nothing of, PAGE:RESULTS.
BESIDE = stacks:stacks-profile stacks:stacks-sessions haproxy:haproxy haproxy:haproxy-quic

# Studies whose rankings docs/trust.md describes.
TRUSTED = page link stacks

# Results that stand beside the papers' figures in docs/papers.md, and those whose tables are pages of their own.
PAPERS = sslmtcp page-handshakes observe haproxy stacks stacks-light stacks-client stacks-profile link roam-paper \
	page-paper page-cablelabs page-windows page-bus
TABLES = page-paper page-windows page-grid page-bus page-flow page-uploads page-push page-handshakes page-chromium-3g \
	page-chromium-5mbit roam-changes roam-engineer haproxy-more haproxy-series

figures: ## rewrite the figures in README.md and docs from the committed results
	$(CARGO) build --release --locked -p cli
	for study in $(STUDIES); do \
		$(WIRETAX) figures README.md docs/results/$$study && \
		$(WIRETAX) figures docs/results/$$study.md docs/results/$$study || exit 1; \
	done
	for study in $(TRUSTED); do $(WIRETAX) figures docs/trust.md docs/results/$$study || exit 1; done
	for results in $(PAPERS); do $(WIRETAX) figures docs/papers.md docs/results/$$results || exit 1; done
	for results in $(TABLES); do \
		$(WIRETAX) figures docs/results/$$results.md docs/results/$$results || exit 1; \
	done
	for pair in $(BESIDE); do \
		$(WIRETAX) figures docs/results/$${pair%%:*}.md docs/results/$${pair##*:} || exit 1; \
	done

install: build ## the program, its man pages and completions under PREFIX (/usr/local)
	scripts/install.sh $(WIRETAX) $(or $(PREFIX),/usr/local)

static: ## the program with nothing to load at run time, as target/static/wiretax, for `probe` and `observe` on servers
	@scripts/setup.sh run
	CARGO='$(CARGO)' scripts/static.sh

package: static ## a Debian package with man pages, completions and units, in target/debian (twice 7 minutes from nothing)
	$(CARGO) build --profile dist --locked -p cli
	CARGO='$(CARGO)' scripts/package.sh target/dist/wiretax target/static/wiretax

clean: ## what the build left
	$(CARGO) clean
