# The house's commands. `make test` is all that a fresh Debian machine with cargo needs.
SHELL := /bin/bash
.DEFAULT_GOAL := test

.PHONY: test interleavings lint format features docs smoke bench soak need

# Every test, the real parts (nginx, curl, h2load) included. TOPE_VECTORS=DIR runs other vectors of the oracle.
test: need interleavings
	cargo test --workspace

# The memory store under a scheduler that tries thousands of interleavings; a build of its own.
interleavings:
	RUSTFLAGS='--cfg shuttle' CARGO_TARGET_DIR=target/shuttle \
		cargo test -p tope --no-default-features --test interleavings

# What the eye would have to look for.
lint: format features
	cargo clippy --workspace --all-targets -- -D warnings

format:
	cargo fmt --all --check

# A feature adds and never changes: none, each alone and all must build without a warning.
features:
	scripts/features

docs:
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps

# The two commands of the README, for real, in a release build.
smoke: need
	scripts/smoke

# Measurements, side by side with governor and with nginx. Quiet machine, please.
bench: need
	cargo bench -p tope
	cargo test --release -p tope-server --test real speed -- --ignored --nocapture
	cargo build --release -p tope-server
	TOPE_BIN=target/release/tope python3 crates/tope-server/benches/gateway.py

# 10,000,000 keys, then ten minutes of load with reloads all the while. SOAK=SECONDS for another length.
soak: need
	cargo build --release -p tope-server
	cargo test --release -p tope-server --test limits -- --ignored --nocapture
	scripts/soak $${SOAK:-600}

need:
	scripts/need cc nginx curl h2load wrk python3
