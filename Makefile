# Everything here needs only Go. `make demo` and `make test` are the two commands to start with.
GO ?= go
# One way to build for all commands, so that what one has compiled serves the others.
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath

.PHONY: build demo test race lint bench peers lanes yardstick fuzz prove interop docs picture release clean
build:
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/...

demo: build
	./bin/tailgate demo --out demo-out

# Tests make and remove many thousand small files, in memory where there is room, and hold little in their own. Some wait: one
# package more than there are processors runs at a time.
RAM = $(shell tools/checks/ram)
test:
	$(GO) vet ./...
	$(if $(RAM),GOTMPDIR=$${GOTMPDIR:-$${TMPDIR:-/tmp}} TMPDIR=$(RAM)) GOGC=400 $(GO) test -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -vet=off ./... # all of it has just been vetted

# Packages with nothing concurrent in them are left out (tools/checks/concurrent), and so are tests of one thread
# (testshared.NotUnderRace) and those of RACE_SKIP: tables and numbers, which one thread makes, and tests of many processes,
# of which the detector sees each alone; of the scripts those stay that follow, send or write side by side.
RACE_SKIP = Guides|MillionRequests|Eight(Workers|Senders)|InTheReport|NaiveModel|PowerLoss|GroupDistributes|KilledWriters|KafkaZombie|KilledBuilds|RandomTransactions|Scanner|Reader(Knows|Agrees)|$\
Decoders|Quirk|Forget|Dictionary|HitCurve|IDCOf|KnownLaws|IntervalsHold|Mooncake|ServeGen|HoursMake|Merged?(Sums|Atoms|Forgets|Keeps|Refuses)|$\
PageHas|PageIs|SharedExamples|SharedGateway|TextIsWritten|ALeakingBuild|RawBatch|LayoutsAreRead|BombIsBounded|Portions|$\
LawsOn(Public|TheFixture)|LawsOfArrivals|RatesAreKept|ManySmallGroups|Knobs|QueueOfKnown|QueueAfter|CountVariance|SplicedIn|RiseAndFall|Hostile|OldSets|FailuresSayNothing|ReadNoMoreThan|SameBytes/bucket|$\
Packed(Plans|RowsAre)|ClockGone|DestroyedKey|AfterTheKey|BadNights|MissedNight|RatesOfANight|FullDisk|ExportStreams|ManyRowsIsRead|BoundsAgree|FailFastIs|$\
BacktestCells|AttributableInterval|MemoChangesNothing|PrefixesHit|AsItsExport|RowsThatWere|ForOtherTools|KeepsItsErrors|BombsAreRefused|NeverPanic|TextIsHidden|$\
RowGroupsEnd|ExpireDrops|ForgottenRows|BatchBomb|DamagedPrompts|CrashesLeave|NaiveOne|MemoryDoesNotGrow|LeaksInParquet|DamagedParquet|SpellingsAre|SIGKILL|KilledNights|Nights(ThatDie|InABucket)|ZombieInABucket|Killed(Anywhere|InABucket|AtEach)|$\
Scripts/(analyze|audit|backtest|capacity|cat|compare|completion|demo|example|explain|failures|foreign|forget|formats|headroom|keys|manydays|profile|public|$\
rescale|servegen|simtruth|simulated|synth|tokenizers|trace|usage)
race:
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 20m -skip '$(RACE_SKIP)' $$(tools/checks/concurrent)

lint:
	golangci-lint run ./...

bench:
	$(GO) test -run '^$$' -bench . -benchtime $(if $(filter smoke,$(BENCH)),50ms,1s) ./... | $(GO) run ./tools/bench
	$(if $(filter smoke,$(BENCH)),,tools/peers/run -if-installed)
	$(if $(filter smoke,$(BENCH)),,tools/peers/lanes)

# Other load generators beside tailgate, against one target: installs them (PyPI, 7 GB), then up to 8 minutes. PEERS has
# flags, such as PEERS='-only aiperf,vllm'.
peers:
	tools/peers/install
	tools/peers/run -out peers.json $(PEERS)

# The client's two transports, and SGLang's client, in three loads; a part of bench. PEERS as above.
lanes:
	tools/peers/lanes $(PEERS)

# Every fuzz target for so long of the processor, those that strangers write first; goes on where the last run ended
# (fuzz.jsonl). FUZZ has patterns and flags of tools/fuzz: make fuzz TIME=1m FUZZ='-jobs 2 ^ingest'.
TIME ?= 10m
fuzz:
	nice $(GO) run ./tools/fuzz -time $(TIME) -ledger fuzz.jsonl $(FUZZ)

# Logs to Parquet, Python's way beside ours; TAILGATE_PROVE=full takes 1 GB instead of 100 MB.
yardstick:
	tools/yardstick/run

# On a real broker where there is Java; the figures of T1 to T17 (docs/ingest.md) come at the end.
prove:
	GO=$(GO) tools/checks/prove

# Plays our exports with the tools they are made for (PyPI, some minutes).
interop:
	tools/interop/run $(TRACES)

# The pages that are made from the code: docs/cli.md and docs/columns.md.
docs:
	$(GO) run ./tools/columns .
	$(GO) test ./cmd/internal/cli -run Reference -update

# The picture of README.md, from the demo's page of four rates.
picture: demo
	$(GO) run ./tools/picture demo-out/rates.html docs/report.svg

# Static binaries for Linux and macOS with checksums, completion files and licences, in dist/.
release:
	GO=$(GO) tools/release

clean:
	rm -rf bin demo-out dist
