// Package capacity answers what request rate a cluster holds with its SLOs kept: Safe QPS, and around it the ladder,
// the soak, the loss of a replica, and the Capacity Envelope that states all of it with its limits.
//
// It sends nothing and judges no single run: a Runner makes runs (cmd joins it to replay), analyze reads and judges
// their folders. What is here decides which run comes next, what the runs together say, and what they do not say.
//
// In: a Plan and the run folders that its runs left. Out: an Envelope.
//
// Invariants. Every published rate was tested in a run of its own and is never above the highest tested rate. A run
// whose client was late is repeated, never a point. What a killed capacity test has finished is not run again: the
// same folders give the same next run.
package capacity
