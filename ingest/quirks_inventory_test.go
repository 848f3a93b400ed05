package ingest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// quirks is the inventory of what gateways and logs do, and of the tests that hold ingest to it. A name after a slash
// is an entry of TestQuirks.
var quirks = []struct {
	quirk string
	tests []string
}{
	{"stamps of the end", []string{"TestQuirks/emitted at end"}},
	{"late and out of order", []string{"TestLateRows"}},
	{"window edge: long requests end behind it", []string{"TestDaysAreOpenUntilTheLogsHaveComeFarEnough", "TestRequestsInFlightAtTheDaysEndAreCounted"}},
	{"duplicates", []string{"TestPublishMergesExactDuplicates"}},
	{"retries and fallbacks", []string{"TestQuirks/retries and fallbacks"}},
	{"cache hits, 429, blocks, probes", []string{"TestQuirks/cache hits, 429 and probes never reach the engine"}},
	{"aborted streams", []string{"TestQuirks/aborted stream", "TestQuirks/0 tokens with text are absent"}},
	{"truncated, redacted and placeholder prompts", []string{"TestQuirks/truncated, redacted and placeholder prompts share nothing behind the mark", "TestQuirks/a body of the gateway's limit is cut"}},
	{"base64 images", []string{"TestQuirks/images count by their bytes", "TestQuirks/cut images are no content"}},
	{"tool calls and definitions", []string{"TestQuirks/tool definitions, calls and results count"}},
	{"mixed units, numbers in strings, NaN", []string{"TestQuirks/units and spellings of numbers"}},
	{"JSON in strings, broken UTF-8, lone surrogates, repeated keys, BOM, NDJSON", []string{"TestQuirks/odd JSON", "TestReaderAgreesWithTheExactFunctions"}},
	{"values in gzip, zstd and zlib, bombs", []string{"TestQuirks/compressed and framed values", "TestBombIsBounded"}},
	{"large messages", []string{"TestLargeRecordsAndABomb", "TestMemoryIsBounded"}},
	{"a producer's compressed batch is a bomb", []string{"TestBatchBomb"}},
	{"codecs of batches", []string{"TestKafkaCodecsNullEmptyAndLarge"}},
	{"null against empty values", []string{"TestRawBatches", "TestOldSets"}},
	{"frames of schema registries", []string{"TestUnwrap", "TestQuirks/compressed and framed values"}},
	{"control batches, aborted transactions", []string{"TestKafkaTransactions", "TestAbortedTransactionsAreNoRows"}},
	{"clock skew between gateways", []string{"TestSkewEstimate", "TestQuirks/clock id"}},
	{"stamps of -1 and logs without stamps", []string{"TestSkewOfLogsWithoutStamps"}},
	{"coarse stamps", []string{"TestQuirks/resolution of the stamps"}},
	{"embeddings and reranking", []string{"TestQuirks/embeddings are not generations"}},
	{"sampling", []string{"TestQuirks/sampling"}},
	{"offsets that are missing", []string{"TestRawBatches", "TestKafkaCompactedTopic", "TestKafkaRetentionGap"}},
	{"topic recreated or truncated", []string{"TestKafkaRecreatedTopic"}},
	{"many requests in one message", []string{"TestQuirks/odd JSON"}},
	{"one request in many rows", []string{"TestPiecesAreJoined", "TestPiecesAcrossSegments", "TestJoinerIsBounded"}},
	{"hashes instead of text", []string{"TestQuirks/hashes instead of text"}},
	{"input counts without the cache", []string{"TestQuirks/input counts include the cache"}},
}

// TestQuirkInventory: every test that the inventory names is there.
func TestQuirkInventory(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t|^\t\t"([^"]+)": +(?:func\(t|compressedValues)`).FindAllStringSubmatch(string(data), -1) {
			if m[1] != "" {
				names = append(names, m[1])
			} else {
				names = append(names, "TestQuirks/"+m[2])
			}
		}
	}
	for _, q := range quirks {
		for _, name := range q.tests {
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no %s", q.quirk, name)
			}
		}
	}
}
