CARGO ?= cargo
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help build test lint bench run redis

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the release binary
	$(CARGO) build --release

# In the release profile, so that its build also serves `make build` and `make run`.
# The documentation's examples need a run of their own: cargo does not mix them with other targets.
test: redis ## Run all tests, with real Redis servers (installs redis-server when it is missing)
	@status=0; \
	$(CARGO) test --release --no-fail-fast --lib --bins --tests || status=1; \
	$(CARGO) test --release --no-fail-fast --doc || status=1; \
	rm -rf "$(TARGET_DIR)"/tmp/weir-it-*; \
	if [ $$status -eq 0 ]; then echo "make test: all tests passed"; else echo "make test: FAILED, see above"; fi; \
	exit $$status

lint: ## Check the format, and that clippy and rustdoc have nothing to say
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --no-deps

bench: ## Run the benchmarks
	$(CARGO) bench

run: ## Run the service; ARGS='...' are its arguments
	$(CARGO) run --release -- $(ARGS)

redis:
	@scripts/install-redis.sh
