package main

import "os"

// brokerRows are measured only on a real broker, which TAILGATE_KAFKA names.
var brokerRows = []row{
	{"real broker to fsynced segments, plain batches", "ingest.BenchmarkRealBroker/codec=none/to=segments", "ingest.BenchmarkRealBroker/codec=none/to=json", "a fetch loop with encoding/json that keeps nothing", 1},
	{"real broker to fsynced segments, zstd batches", "ingest.BenchmarkRealBroker/codec=zstd/to=segments", "ingest.BenchmarkRealBroker/codec=zstd/to=json", "a fetch loop with encoding/json that keeps nothing", 1},
}

// withBroker adds the rows that this environment can measure.
func withBroker(rows []row) []row {
	if os.Getenv("TAILGATE_KAFKA") == "" {
		return rows
	}
	return append(rows[:len(rows):len(rows)], brokerRows...)
}
