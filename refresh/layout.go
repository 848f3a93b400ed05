package refresh

import "path"

// Folders and files below the root, as keys with slashes.
const (
	LakeFolder     = "lake"
	ProfilesFolder = "profiles"
	TracesFolder   = "traces"
	ReportsFolder  = "reports"
	StateFolder    = "state"

	StatusFile   = "reports/status.json"
	StatusPage   = "reports/status.html"
	MetricsFile  = "reports/metrics.prom"
	leaseFile    = "state/lease.json"
	driftName    = "drift.json"
	driftTable   = "drift.parquet"
	PrivacyName  = "privacy.json"
	HeadroomName = "headroom.json"
	headroomCSV  = "headroom.csv"
	headroomProm = "headroom.prom"
	statusName   = "status.json"
)

// ProfileFolder is the folder of a day's profile.
func ProfileFolder(day string) string { return path.Join(ProfilesFolder, "day="+day) }

// TraceFolder is the folder of a day's traces.
func TraceFolder(day string) string { return path.Join(TracesFolder, "day="+day) }

// ReportFolder is the folder of a day's reports.
func ReportFolder(day string) string { return path.Join(ReportsFolder, "day="+day) }

// journalFile is the journal of a day.
func journalFile(day string) string { return path.Join(StateFolder, "day="+day+".json") }

// traceName is the file of a class at a scale; the scale "" is the trace itself.
func traceName(class, scale string) string {
	if scale != "" {
		class += "@" + scale
	}
	return class + ".jsonl.zst"
}
