# Slipway. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PROFILE ?= profiles/lab.yaml
ENV     := $(basename $(notdir $(PROFILE)))
NODE    ?= n1
OUT     ?= out/$(ENV)
GO      ?= go
# For the Go tool, in every recipe: see scripts/env.
export GOFLAGS := -tags=libsqlite3,kustomize_disable_go_plugin_support -buildvcs=false -trimpath
export CGO_LDFLAGS_ALLOW := -Wl,-z,now
# pxed and bootstrap carry dqlite and what that needs, so that they run where it is not installed.
PXED_LDFLAGS := -Wl,--as-needed -Wl,-Bstatic -ldqlite -lraft -luv_a -lsqlite3 -llz4 -lz -Wl,-Bdynamic -lm -ldl -lpthread

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install the Debian packages that a build needs
	@scripts/deps build

.PHONY: build
build: build-image ## compile the programs into bin/
	@scripts/deps pxed
	@CGO_LDFLAGS='$(PXED_LDFLAGS)' $(GO) build -o bin/ ./cmd/pxed ./cmd/bootstrap

# What building an image needs, without a C compiler and pxed's libraries.
.PHONY: build-image
build-image:
	@mkdir -p bin
	@CGO_ENABLED=0 $(GO) build -ldflags '-s -w -buildid=' -o bin/nodeinit ./cmd/nodeinit
	@CGO_ENABLED=0 $(GO) build -o bin/imagebuild ./cmd/imagebuild

.PHONY: image
image: deps build-image ## build the image of PROFILE (default profiles/lab.yaml) with the seed of NODE (default n1)
	@bin/imagebuild build -p $(PROFILE) --node $(NODE) -O $(OUT)

.PHONY: test
test: ## run every test: packages, image, boot
	@scripts/deps test
	@scripts/test

.PHONY: netboot-test
netboot-test: build image ## netboot and install virtual machines in every supported way
	@scripts/deps test
	@scripts/metal-image
	@SLIPWAY_NETBOOT=full $(GO) test -count=1 -p 1 -timeout 80m -v ./vm-test/firmware ./vm-test/netboot ./vm-test/stick

# An aim that is missed does not keep the rest from being measured.
.PHONY: bench
bench: ## measure everything beside the programs that others use
	@rc=0; for part in bench-pxed bench-cluster bench-image; do $(MAKE) --no-print-directory $$part || rc=1; done; exit $$rc

.PHONY: bench-pxed
bench-pxed: build image ## the part about netboot and installs
	@scripts/deps bench
	@rc=0; for p in pxebench installbench; do $(GO) test -count=1 -timeout 30m -run '^TestBench' -v ./vm-test/$$p -bench-run || rc=$$?; done; exit $$rc

.PHONY: bench-cluster
bench-cluster: ## the part about a bootstrap that has nothing to do
	@$(GO) test -count=1 -timeout 20m -run '^TestBench' -v ./vm-test/bootstrap -bench-run

.PHONY: bench-image
bench-image: build image ## the part about building and booting an image
	@scripts/deps bench
	@$(GO) test -count=1 -timeout 60m -run '^TestBench' -v ./vm-test/bench -bench-run

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (default 30s) each
	@scripts/fuzz $(or $(FUZZTIME),30s)

.PHONY: pin
pin: build-image ## resolve the newest inputs of all profiles and write their locks
	@rc=0; for p in lab dev prod; do bin/imagebuild pin -p profiles/$$p.yaml || rc=$$?; done; exit $$rc

.PHONY: generate
generate: build-image ## write the generated files anew: schema and references
	@bin/imagebuild schema > profiles/schema.json
	@bin/imagebuild schema --reference > docs/PROFILE.md

.PHONY: lint
lint: ## vet, format and architecture checks
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	@$(GO) vet ./...
	@$(GO) test ./internal/archtest

.PHONY: clean
clean: ## remove bin/ and out/; the cache in ~/.cache/slipway stays
	@rm -rf bin out
