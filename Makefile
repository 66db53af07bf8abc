# The only entry. `make` alone lists what there is.
# Everything is installed into the checkout: .venv (Python), target (Rust), .cache (data).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLIENTS := .venv-clients
CACHE ?= .cache
RUST_SOURCES = $(shell find crates -name '*.rs' -o -name '*.[ch]' -o -name Cargo.toml -o -name pyproject.toml) Cargo.toml Cargo.lock

.PHONY: help demo test test-clients test-rest bench-compare bench-bulk bench-levels bench-kernels bench-java bench-scheduler bench-churn bench-node sim sim-cachegrind fuzz reliability soak check tidy fix doctor clean

help:
	@echo 'make demo    semantic search over real text, from nothing (QUERY="..." asks once, DEMO_ALL=1 takes all texts)'
	@echo 'make test    every test of every language'
	@echo 'make test-clients  opensearch-py, LangChain, LlamaIndex, Haystack and two benchmarks on a node of ours (CLIENT_ARGS for pytest)'
	@echo 'make test-rest  the scenarios of rest-tests on a node of ours, or on OPENSEARCH_URL (REST_ARGS for pytest)'
	@echo 'make bench-compare  recall against queries a second beside seven libraries, on four data sets (hours)'
	@echo 'make bench-levels   bit vectors with one instruction set after the other, in segments and in one'
	@echo 'make bench-bulk     filling a table in bulk or write by write, beside hnswlib and faiss that only build (an hour)'
	@echo 'make bench-kernels  each kernel beside NumKong, SimSIMD, FAISS, Lucene and the limits of this machine'
	@echo 'make bench-java     the drop-in for Lucene beside Lucene (JDK 22 or later, Maven)'
	@echo 'make bench-scheduler  60 graph tables and 15 list tables on this machine: round-robin, stealing, chiplet'
	@echo 'make bench-churn    recall and latencies of a table while a fifth of it is replaced, with merges and without'
	@echo 'make bench-node     a node beside OpenSearch with its k-NN plugin: throughput, latencies, index time (an hour; JDK, Maven)'
	@echo 'make sim     the policies on simulated machines with many chiplets, as figures (bench-out/sim)'
	@echo 'make sim-cachegrind  the simulated caches beside those of cachegrind (needs valgrind)'
	@echo 'make fuzz    hostile files, FUZZ_SECONDS (600) for each of FUZZ_TARGETS; needs nightly Rust and cargo-fuzz'
	@echo 'make reliability  the long runs of docs/reliability.md: 10,000 kills, 100,000 crash images, ... (hours)'
	@echo 'make soak    ten minutes of writes, deletes, searches, merges and alias swaps on a node, each answer against a model (SOAK_ARGS)'
	@echo 'make doctor  what this machine has and which kernels run'
	@echo 'make check   lints, formats, tiers, generated files'
	@echo 'make fix     formats, regenerates'
	@echo 'make clean   removes what was built; the data in $(CACHE) stays'
	@echo
	@echo 'PYTHON=/path/to/python3 makes the virtual environment, CACHE=folder keeps the data,'
	@echo 'BENCH_ARGS=... goes to the benchmarks (--quick makes them short, --help lists what they take)'

demo: $(VENV)/.lanewise
	@$(BIN)/python -m lanewise.demo --cache "$(CACHE)"
# As the user wrote them: a query may hold dollar signs, which make must not read. The program looks in its environment.
override QUERY := $(value QUERY)
override DEMO_ALL := $(value DEMO_ALL)
export QUERY DEMO_ALL

test: $(VENV)/.tools
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh scripts/test

# OPENSEARCH_URL has another server tested instead of a node of ours, to see whether the tests ask what OpenSearch does.
test-clients: $(CLIENTS)/.installed
	@$(CLIENTS)/bin/python -m pytest -q -rs tests/clients $(CLIENT_ARGS)

test-rest: $(VENV)/.tools
	@$(BIN)/python -m pytest -q -rs rest-tests $(REST_ARGS)

# Without arguments the whole comparison, whose page is kept; with arguments the page lies in bench-out too.
bench-compare: $(VENV)/.bench
	@PYTHONPATH=crates/bench $(BIN)/python -m compare --cache "$(CACHE)" --out bench-out/compare \
	    $(or $(BENCH_ARGS),--page crates/bench/record/compare.md)

bench-levels: $(VENV)/.lanewise
	@PYTHONPATH=crates/bench $(BIN)/python -m compare.levels --cache "$(CACHE)" --out bench-out/levels $(BENCH_ARGS)

bench-bulk: $(VENV)/.bench
	@PYTHONPATH=crates/bench $(BIN)/python -m compare.bulk --cache "$(CACHE)" --out bench-out/bulk \
	    $(or $(BENCH_ARGS),--page crates/bench/record/bulk.md)

# Arm's instructions are counted where the cross-compiler is (and qemu-aarch64, which the record asks for if need be).
ARM_CC ?= aarch64-linux-gnu-gcc
bench-kernels: $(VENV)/.bench-kernels
	@$(MAKE) -s -C crates/kernels
	@! command -v $(ARM_CC) >/dev/null || $(MAKE) -s -C crates/kernels CC=$(ARM_CC) OUT=../../target/kernels-arm
	@PYTHONPATH=crates/bench $(BIN)/python -m kernels --library target/kernels/liblanewise_kernels.so \
	    --arm-library target/kernels-arm/liblanewise_kernels.so --java scripts/java --out bench-out $(BENCH_ARGS)

bench-java:
	@$(MAKE) -s -C crates/kernels
	@sh scripts/java bench --csv "$(CURDIR)/bench-out/lucene.csv" $(BENCH_ARGS)

bench-scheduler:
	@cargo run -q --release -p lanewise-bench --bin scheduler -- --cache "$(CACHE)/tables" $(BENCH_ARGS)

bench-churn:
	@cargo run -q --release -p lanewise-bench --bin churn -- --cache "$(CACHE)" \
	    $(or $(BENCH_ARGS),--page crates/bench/record/churn.md)

bench-node: $(VENV)/.bench
	@cargo build -q --release -p lanewise-cli -p lanewise-bench --bin lanewise --bin load
	@PYTHONPATH=crates/bench $(BIN)/python -m compare.node --cache "$(CACHE)" --out bench-out/node \
	    --lanewise target/release/lanewise --load target/release/load \
	    $(or $(BENCH_ARGS),--page crates/bench/record/node.md)

# Searches of 60 graph tables and of 15 list tables of 512 MiB each, built (four minutes on two cores) and recorded once.
SIM_TRACES := $(CACHE)/traces
SIM_OUT := bench-out/sim
$(SIM_TRACES)/%.trace:
	@echo 'recording searches of $* tables …'
	@cargo run -q --release -p lanewise-bench --bin scheduler -- --cache "$(CACHE)/tables" --mib 512 --kind $* \
	    --record "$(SIM_TRACES)"

sim: $(VENV)/.tools $(SIM_TRACES)/hnsw.trace $(SIM_TRACES)/ivf.trace
	@cargo run -q --release -p lanewise-cli --bin lanewise -- sim --out $(SIM_OUT) \
	    --traces $(SIM_TRACES)/hnsw.trace $(SIM_TRACES)/ivf.trace $(SIM_ARGS)
	@PYTHONPATH=crates/bench $(BIN)/python -m sim $(SIM_OUT)

sim-cachegrind:
	@command -v valgrind >/dev/null || { echo 'needs valgrind: apt-get install valgrind' >&2; exit 1; }
	@cargo test -q -p lanewise-bench --test it cachegrind -- --nocapture

FUZZ := target/fuzz
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= open log blob manifest segment table_log snapshot search bulk
fuzz:
	@cargo run -q --release --manifest-path fuzz/Cargo.toml --target-dir $(FUZZ) --bin seeds -- $(FUZZ)/corpus
	@for target in $(FUZZ_TARGETS); do \
	    cargo +nightly fuzz run -O --target-dir $(FUZZ) $$target $(FUZZ)/corpus/$$target -- \
	    -max_len=65536 -timeout=30 -rss_limit_mb=3000 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 || exit 1; \
	done

reliability:
	@sh scripts/reliability long

soak: $(CLIENTS)/.installed
	@cargo build -q --release -p lanewise-cli --bin lanewise
	@LANEWISE="$${LANEWISE:-$(CURDIR)/target/release/lanewise}" $(CLIENTS)/bin/python tests/clients/soak.py $(SOAK_ARGS)

doctor:
	@cargo run -q --release -p lanewise-cli --bin lanewise -- doctor

check tidy: $(VENV)/.tools
	@PATH="$(CURDIR)/$(BIN):$$PATH" cargo run -q -p xtask -- tidy
	cargo clippy -q --workspace --all-targets -- -D warnings
	@sh scripts/java check-format || { [ $$? = 77 ] && echo 'skipped: Java formatting'; }

fix: $(VENV)/.tools
	@sh scripts/java format || { [ $$? = 77 ] && echo 'skipped: Java formatting'; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" cargo run -q -p xtask -- tidy --fix

# The virtual environment, and what is installed into it: versions are pinned in crates/python/pyproject.toml and
# crates/bench/compare/requirements.txt. The stamps say what is up to date.
MATURIN := maturin==1.16.0
DEVELOP = cd crates/python && CARGO_TARGET_DIR="$(CURDIR)/target" VIRTUAL_ENV="$(CURDIR)/$(VENV)" \
	../../$(BIN)/maturin develop -q --release

$(BIN)/maturin:
	@sh scripts/venv "$(PYTHON)" $(VENV)
	@$(BIN)/pip install -q $(MATURIN)

$(VENV)/.lanewise: $(BIN)/maturin $(RUST_SOURCES)
	@echo 'building Lanewise and installing it into $(VENV) …'
	@$(DEVELOP) --extras demo
	@touch $@

# The benchmarks' tests draw a picture; the libraries that are measured they do without. Of OpenSearch's clients its own.
$(VENV)/.tools: $(VENV)/.lanewise crates/bench/kernels/requirements.txt tests/clients/requirements.txt
	@echo 'installing what the tests need into $(VENV) …'
	@$(DEVELOP) --extras demo,test
	@$(BIN)/pip install -q $$(grep '^matplotlib' crates/bench/kernels/requirements.txt) \
	    $$(grep -E '^(aiohttp|opensearch-py|PyYAML)=' tests/clients/requirements.txt)
	@touch $@

# One by one: a library that has no wheel for this Python (hnswlib has none at all and is compiled) is left out, and
# its rows say so.
$(VENV)/.bench: $(VENV)/.lanewise crates/bench/compare/requirements.txt
	@echo 'installing the libraries to compare with into $(VENV) …'
	@for each in $$(grep -v '^#' crates/bench/compare/requirements.txt); do \
	    $(BIN)/pip install -q "$$each" || echo "$$each could not be installed: the comparison goes on without it" >&2; \
	done
	@touch $@

$(VENV)/.bench-kernels: $(BIN)/maturin crates/bench/kernels/requirements.txt
	@$(BIN)/pip install -q -r crates/bench/kernels/requirements.txt
	@touch $@

# opensearch-benchmark wants an older opensearch-py: it has an environment of its own.
$(CLIENTS)/.installed: tests/clients/requirements.txt tests/clients/requirements-benchmark.txt
	@echo 'installing OpenSearch clients into $(CLIENTS) …'
	@sh scripts/venv "$(PYTHON)" $(CLIENTS)
	@sh scripts/venv "$(PYTHON)" $(CLIENTS)/benchmark
	@$(CLIENTS)/bin/pip install -q -r tests/clients/requirements.txt
	@$(CLIENTS)/benchmark/bin/pip install -q -r tests/clients/requirements-benchmark.txt
	@touch $@

clean:
	rm -rf target $(VENV) $(CLIENTS) bench-out
