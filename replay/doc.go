// Package replay sends a finished schedule and records what came back.
//
// It is no scheduler of rates (synth makes schedules), no judge (analyze reads the rows), and knows no wire
// protocol: a Transport (replay/openai) or an Engine (sim) carries the requests.
//
// In: a Plan (sorted rows of a timed trace) and Options. Out: one schemas.Result per scheduled row, handed to a
// Recorder, and a Summary with the facts that a run's validity is judged on.
//
// One send logic, two clocks. The schedule, the sessions, the cap on requests in flight, the closed loop, the
// phases and the rules that stop a run are one pure state machine: (now, event) → sends. RunReal steps it by
// the wall clock over a Transport, RunVirtual by an event queue over an Engine.
//
// Invariants:
//   - Open loop: a row leaves at its stamp on an absolute schedule; equal stamps leave together, in plan order;
//     nothing is skipped for being late, and lateness (lag) is in every row.
//   - Closed loop: a request is scheduled at the instant at which its slot became free.
//   - Every scheduled row ends as exactly one result. The status not_sent comes only from a stop. In a closed
//     loop a row for which no slot became free before a stop was never scheduled and has no result.
//   - No send at or after the deadline of Options.Duration.
//   - The same plan, options and engine give the same rows in virtual time.
package replay
