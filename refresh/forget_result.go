package refresh

import "tailgate/ingest"

// ForgetResult is what Forget did, or would do. Nothing in it names who was forgotten.
type ForgetResult struct {
	DryRun bool `json:"dry_run"`
	// Tombstones are the tokens of the tombstones that were applied.
	Tombstones []string `json:"tombstones"`
	// Epochs are the pseudonym keys under which the name was looked for.
	Epochs   []string            `json:"pseudonym_epochs"`
	Segments ingest.ForgetReport `json:"segments"`
	Days     []ForgottenDay      `json:"days"`
	Folders  []ForgottenFolder   `json:"folders"`
	// Again are days and folders that are to be made again from what stays.
	Again []string `json:"again"`
	// Unsearched are days whose pseudonym key is gone: nobody can tell any more which of their rows are his.
	Unsearched []UnsearchedDay `json:"unsearched"`
	// Removed are files that tailgate made of rows and that held a token of his: pages, reports, tables of counts, traces of
	// formats that are only written once.
	Removed []ForgottenFile `json:"removed"`
	// Left are files that still hold a token of his, outside of the tombstones: tailgate did not write them, or they were
	// written meanwhile.
	Left []string `json:"left"`
	// Unreadable are files that could not be searched to their end, with the reason: they may hold a token.
	Unreadable []string `json:"unreadable"`
	Notes      []string `json:"notes"`
}

// What became of a day of the lake.
const (
	DayRebuilt  = "rebuilt"  // from its segments
	DayFiltered = "filtered" // its segments are gone: the rows were taken out of the build
	DayRemoved  = "removed"  // nothing is left of it
	DayToDo     = "to_do"    // in a dry run
)

// ForgottenDay is a day of the lake that had rows.
type ForgottenDay struct {
	Day  string `json:"day"`
	Done string `json:"done"` // a Day… constant
	Rows int64  `json:"rows"` // that stay
}

// ForgottenFolder is a folder with traces or results that had rows.
type ForgottenFolder struct {
	Folder string `json:"folder"`
	Rows   int64  `json:"rows"`  // taken out
	Files  int    `json:"files"` // rewritten, or removed

	dropped []string // of them, removed
}

// UnsearchedDay is a published day that cannot be searched.
type UnsearchedDay struct {
	Day   string `json:"day"`
	Epoch string `json:"epoch"`
}
