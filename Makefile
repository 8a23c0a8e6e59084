# braid: `make demo` shows it working, `make test` passes the whole suite.
GO ?= go
FUZZTIME ?= 30s
LIVE = ./internal/interop ./internal/script ./experiment/real # in real time: not beside the others
STATICCHECK = $(GO) tool -modfile=tools/go.mod staticcheck

.DEFAULT_GOAL := help
.PHONY: help build demo test race check cross bench fuzz faults hostile clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/braid
	$(GO) build -o bin/braid ./cmd/braid

demo: build ## two emulated paths on loopback, one cut and brought back: no privilege, under 40 s
	bin/braid demo

test: check ## the whole suite: lint, tests, a subset under the race detector, cross-builds
	$(GO) test $$($(GO) list ./... | grep -v -e /interop -e /internal/script -e /experiment/real)
	$(GO) test -p 1 $(LIVE) || $(GO) test -p 1 $(LIVE) # the kernel's timing has a share in these: what fails twice is ours
	$(MAKE) race cross

race: ## a short form of everything but the conversations with the kernel, under the race detector (needs a C compiler)
	@if command -v $${CC:-cc} >/dev/null || command -v gcc >/dev/null; then \
	  $(GO) test -race -short $$($(GO) list ./... | grep -v /interop); \
	else echo "race: skipped, no C compiler (install gcc)"; fi

check: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo "run gofmt -w on the files above"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...

cross: ## build for darwin, windows and linux/arm64
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) build ./...

bench: build ## every benchmark once, then throughput over loopback
	$(GO) test -run '^$$' -bench . -benchmem ./...
	bin/braid bench --loopback

fuzz: ## every fuzz target for FUZZTIME (default 30s)
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

faults: ## the whole-stack fault test over 100,000 seeds (minutes); SEEDS=n for another number
	$(GO) test ./netsim -run TestFaults -timeout 0 -faults.seeds $${SEEDS:-100000}

hostile: ## forged packets against live connections in the simulator, 10 million (minutes); SEGMENTS=n for another number
	$(GO) test ./netsim -run 'TestHostile$$' -timeout 0 -v -hostile.segments $${SEGMENTS:-10000000}

clean: ## remove what was built
	rm -rf bin
