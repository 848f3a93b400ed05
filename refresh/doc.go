// Package refresh is the nightly job: it brings a finished day from the gateway's log to profiles, drift, traces and
// rescaled traces, one step after the other.
//
// Every step's output appears whole or not at all. A journal in the root says what was done of what; a step is done
// again only when its inputs, its settings or its output are not the ones noted there. So a second run does nothing,
// and a run that was killed goes on where it stood.
//
// One run writes at a time. The one that may has a lease with a number that only grows (the fencing token); it is
// looked at before each rename, so that a run which was suspended, and whose lease another one took over, fails at its
// next write.
//
// Layout below the root, a folder or s3://bucket/prefix:
//
//	lake/                             segments and days, as ingest and publish write them
//	profiles/day=D/                   profile tables, manifest.json
//	traces/day=D/<class>.jsonl.zst    and <class>@1.5x.jsonl.zst, each with .meta.json; manifest.json for all of them
//	reports/day=D/                    drift.json, privacy.json, headroom.json, status.json of that day
//	reports/                          status.json, status.html, metrics.prom of the last run
//	state/                            lease.json, running.lock, day=D.json (journals), tombstones
package refresh
