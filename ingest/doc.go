// Package ingest turns gateway logs into the lake: it reads Kafka topics and files, decodes what the gateways
// wrote, anonymizes each request in memory, appends the rows to a segment log, and publishes the log as one
// Parquet file per day.
//
// In: a [Source] (OpenKafka, OpenFiles) and an [Anonymizer]. Out: [Run] writes LAKE/_segments and LAKE/_dead,
// [Publish] reads the segments and writes LAKE/day=YYYY-MM-DD/requests.parquet with its manifest, [Reprocess]
// reads dead letters again and writes LAKE/_reprocessed.
//
// It is not a tokenizer and holds no keys: ids and tokens come from the Anonymizer. It fits nothing and drops
// no row: what the load looked like is for profile and trace to say.
//
// Invariants.
//   - Prompt text exists in memory only. Files, errors and logs hold enums, keyed tokens, ids and counts.
//   - Every offset from the first on appears exactly once in the segments of its topic and generation, as
//     rows, as a counted skip, as a dead letter or as a counted hole; the sum is checked before a segment is
//     published. Resuming reads the segment files and nothing else: consumer groups are advisory.
//   - A segment is named by its first offset alone and published by link(2), so that writers that resume at
//     the same place collide and one of them gives way.
//   - Publish gives the same bytes for the same segments, options and keys, in bounded memory.
package ingest
