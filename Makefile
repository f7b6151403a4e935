# sbx: make help lists the targets.
SHELL := /usr/bin/env bash
GO    ?= go
BIN   := bin/sbx
PKGS  := ./...
# -p 2: the tests start real processes, and CI has two cores.
TEST  := $(GO) test -race -p 2 -timeout 20m

.DEFAULT_GOAL := help
.PHONY: help build test torture check lint bench demo run golden clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/sbx
	@$(GO) build -trimpath -ldflags='-s -w' -o $(BIN) ./cmd/sbx

demo: build ## make three sandboxes, break one, watch it being healed
	@$(BIN) demo

run: build ## open the dashboard on your own sandboxes
	@$(BIN) tui

test: ## install what the tests need where that is allowed, and run them all
	@.ci/deps
	$(TEST) $(PKGS)

torture: ## kill engines and shims under load (SBX_TORTURE_ENGINE, SBX_TORTURE_SHIM: how often)
	$(GO) test -tags torture -count=1 -timeout 60m -v -run TestTorture ./cmd/sbx

check: lint test ## format, vet, staticcheck and all tests

lint: ## format, vet and staticcheck
	@files=$$($(GO) tool -modfile=.tools/gofumpt/go.mod gofumpt -l $$(git ls-files '*.go')); \
	 if [ -n "$$files" ]; then echo "gofumpt would change:"; echo "$$files"; exit 1; fi
	$(GO) vet $(PKGS)
	$(GO) tool -modfile=.tools/staticcheck/go.mod staticcheck $(PKGS)

bench: ## run the benchmarks and print them as ratios against their floors
	@$(GO) build -trimpath -ldflags='-s -w' -o $(BIN) ./cmd/sbx
	@$(GO) run ./cmd/sbx/internal/bench

golden: ## rewrite the golden frames of the dashboard
	@$(GO) test ./tui/... -update

clean: ## remove what was built
	@rm -rf bin
