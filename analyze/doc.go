// Package analyze turns the rows of one or more runs into tails per bucket and into the verdict of a gate.
//
// It is not a recorder and not a search: it reads finished files and judges what stands in them. Result rows
// go in (run folders, Parquet or JSONL); a Report comes out, which renders as JSON, text, HTML and JUnit.
//
// Invariants. Verdicts and percentiles rest on exact values, by nearest rank. Rows of several inputs are merged,
// percentiles never. A request that failed or never ended counts as infinitely late in every tail and rule.
// What is unknown is null, never 0, and a rule without data never passes. A run that broke its own terms is
// invalid, and an invalid run neither passes nor fails.
package analyze
