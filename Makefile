# Everything here needs only Go. `make demo` and `make test` are the two commands to start with.
GO ?= go
export CGO_ENABLED ?= 0

.PHONY: build demo test race lint bench prove interop clean
build:
	@mkdir -p bin
	$(GO) build -trimpath -o bin/ ./cmd/...

demo: build
	./bin/tailgate demo --out demo-out

test:
	$(GO) vet ./...
	$(GO) test ./...

race:
	CGO_ENABLED=1 $(GO) test -race ./...

lint:
	golangci-lint run ./...

bench:
	$(GO) test -run '^$$' -bench . -benchtime $(if $(filter smoke,$(BENCH)),50ms,1s) ./... | $(GO) run ./tools/bench

prove:
	TAILGATE_PROVE=full $(GO) test -count=1 -timeout 3h ./...

# Plays our exports with the tools they are made for (PyPI, some minutes).
interop:
	tools/interop/run $(TRACES)

clean:
	rm -rf bin demo-out dist
