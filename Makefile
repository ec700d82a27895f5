CARGO ?= cargo
# Where image and chart are placed: ghcr.io/OWNER. A publisher sets it here, or on the command line.
OWNER ?= OWNER
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help build dist check test test-long lint lint-code lint-files luacheck helm chart image release test-release bench bench-access bench-against bench-http bench-modes figures pictures simulate soak run redis clients envoy chromium prometheus proxies timeseries redis-6 reference throttlecrab

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the release binary, quickly: for trying it out
	$(CARGO) build --release

dist: ## Build the binary that is deployed and measured, for speed
	$(CARGO) build --profile dist

check: ## Check the format, clippy and the pure tests: while you write code, in less than 30 seconds
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace -- -D warnings
	$(CARGO) test --quiet --package weir-units --package weir-core --lib

# In the profile `tests`, which builds twice as fast as `release`; see Cargo.toml.
test: redis clients envoy proxies chromium prometheus helm ## Run all tests against real servers and clients (installs what is missing); STEPS="unit semantics" runs some
	@scripts/test.sh $(STEPS)

test-long: redis clients envoy chromium prometheus timeseries redis-6 reference ## Run the long tests: restarts, fuzzing, soaks, the suite on tonic; within BUDGET=420 seconds; all of them with BUDGET=1800
	@scripts/test-long.sh; status=$$?; rm -rf "$(TARGET_DIR)"/tmp/weir-it-*; exit $$status

lint: ## Check the format, clippy, rustdoc, luacheck, the protos, the licences, OpenAPI and the linters of clients/, without any warning
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint-code lint-files

# It waits for downloads and for linters of one thread, beside the compiler.
lint-files:
	scripts/lint-protos.sh
	scripts/lint-licences.sh
	scripts/lint-openapi.sh
	scripts/test-clients.sh lint

# In the profile of the tests, so that macros and build scripts are built once for both.
lint-code: luacheck
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile tests --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --profile tests --workspace --no-deps

# In the profile `dist`, which `bench` inherits.
# The first three print while they run. Their output is kept beside the table of the last one.
bench: SHELL = /bin/bash
bench: .SHELLFLAGS = -o pipefail -c
bench: redis ## Run the benchmarks and write target/bench/table.md; QUICK=1 measures the service only, in a minute
	@mkdir -p "$(TARGET_DIR)/bench"
ifndef QUICK
	$(CARGO) bench --bench engines | tee "$(TARGET_DIR)/bench/engines.txt"
	$(CARGO) bench --bench memory | tee "$(TARGET_DIR)/bench/memory.txt"
	$(CARGO) bench --bench script | tee "$(TARGET_DIR)/bench/script.txt"
endif
	$(CARGO) bench --bench service $(if $(QUICK),-- --quick)

bench-access: ## Measure what TLS, identity and rights cost: CPU per call, and handshakes; writes target/bench/access.md
	$(CARGO) bench --bench access

bench-http: throttlecrab ## Measure a decision by HTTP beside gRPC, bare hyper and throttlecrab, by turns; writes target/bench/http.md; QUICK=1 in 15 seconds
	PATH="$(CURDIR)/.cache/tools/bin:$$PATH" $(CARGO) bench --bench service -- --http $(if $(QUICK),--quick)

bench-modes: redis ## Measure what counting on the node costs and saves: exact, local, approximate; writes target/bench/modes.md
	$(CARGO) bench --bench modes

bench-against: ## Compare CPU and instructions of a decision with those of REF=..., by turns; WORK=unary, batch, envoy, hot or limits4; ROUNDS=5 STORES="memory redis"
	@scripts/bench-against.sh $(REF)

figures: ## Put the table of the last `make bench` into docs/performance.md
	@awk 'FNR == NR { table = table $$0 "\n"; next } \
		/^<!-- figures -->/ { print $$0 "\n\n" table; skip = 1 } \
		/^<!-- end of figures -->/ { skip = 0 } \
		!skip' "$(TARGET_DIR)/bench/table.md" docs/performance.md > "$(TARGET_DIR)/bench/performance.md"
	@cp "$(TARGET_DIR)/bench/performance.md" docs/performance.md

pictures: ## Draw the pictures of docs/algorithms.md with `weir simulate`
	$(CARGO) build --release
	scripts/pictures.sh "$(TARGET_DIR)/release/weir" docs/pictures

# With --workspace: for a single package, cargo would build everything again with other features.
simulate: ## Print a run of the simulator of nodes, from SEED=0
	WEIR_SEED=$(or $(SEED),0) $(CARGO) test --quiet --profile tests --workspace --test nodes -- --nocapture printed::

soak: redis ## Keep the service at saturation for SECONDS=300 on each store, and check every decision
	WEIR_SOAK_SECONDS=$(or $(SECONDS),300) $(CARGO) test --release --workspace --test operations -- --nocapture long_soak::

image: ## Build the images without a daemon into target/image: an OCI layout, and an archive for each architecture
	@OWNER=$(OWNER) scripts/image.sh

release: helm ## Build the files of a release into target/release-files: archives, .deb, chart, checksums, notes
	@OWNER=$(OWNER) scripts/release.sh

test-release: ## Build image, archives and .deb, ask a decision of each, and run the long tests in full; PROFILE=tests builds faster
	@OWNER=$(OWNER) scripts/test-release.sh

chart: helm ## Package the Helm chart of OWNER=... into target/chart
	@rm -rf "$(TARGET_DIR)/chart" && mkdir -p "$(TARGET_DIR)/chart"
	@cp -rL deploy/helm/weir "$(TARGET_DIR)/chart/weir"
	@grep -rl OWNER "$(TARGET_DIR)/chart/weir" | xargs sed -i 's/OWNER/$(OWNER)/g'
	@.cache/helm/helm package --destination "$(TARGET_DIR)/chart" "$(TARGET_DIR)/chart/weir"

run: ## Run the service with the arguments ARGS='...'
	$(CARGO) run --release -- $(ARGS)

# In the profile of `make test`.
luacheck:
	@scripts/install-luacheck.sh
	$(CARGO) build --quiet --profile tests --workspace --example lua_scripts
	@rm -rf .cache/lua
	@"$(TARGET_DIR)/tests/examples/lua_scripts" .cache/lua
	luacheck --quiet --codes .cache/lua

redis:
	@scripts/install-redis.sh

clients:
	@scripts/install-clients.sh

envoy:
	@scripts/install-envoy.sh

chromium:
	@scripts/install-chromium.sh

prometheus:
	@scripts/install-prometheus.sh

proxies:
	@scripts/install-proxies.sh

helm:
	@scripts/install-helm.sh
	@scripts/install-compose.sh

throttlecrab:
	@scripts/install-throttlecrab.sh

timeseries:
	@scripts/install-timeseries.sh

reference:
	@scripts/install-reference.sh

redis-6:
	@scripts/install-redis-6.sh
