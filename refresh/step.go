package refresh

// Step is one step of a refresh.
type Step string

// Steps, in their order.
const (
	StepIngest    Step = "ingest"    // the log, up to the day's mark
	StepPublish   Step = "publish"   // the day of the lake
	StepProfile   Step = "profile"   // its profile
	StepDrift     Step = "drift"     // against the profile of the last good day
	StepTraces    Step = "traces"    // of each class, and rescaled
	StepPrivacy   Step = "privacy"   // what was kept, and the canary's result
	StepHeadroom  Step = "headroom"  // against the capacity envelope
	StepRetention Step = "retention" // what has expired, and keys that are due
	StepStatus    Step = "status"    // page, status.json, metrics
)

// Steps lists them in the order in which they are done.
func Steps() []Step {
	return []Step{StepIngest, StepPublish, StepProfile, StepDrift, StepTraces, StepPrivacy, StepHeadroom, StepRetention, StepStatus}
}

// What became of a step.
const (
	StepDone    = "done"
	StepSkipped = "skipped" // nothing had changed since it was done
	StepOff     = "off"     // not configured
	StepFailed  = "failed"
)
