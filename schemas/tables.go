package schemas

// Table names one table and its row type.
type Table struct {
	Name string
	Row  any // zero value of the row type
}

// Tables lists every table that tailgate writes, in the order of the documentation.
func Tables() []Table {
	return []Table{
		{TableRequests, Request{}},
		{TableSegment, Request{}},
		{TableDeadLetters, DeadLetter{}},
		{TableTrace, TraceRow{}},
		{TableResults, Result{}},
		{TableRuns, Run{}},
		{TableBuckets, Bucket{}},
		{TableVerdicts, Verdict{}},
		{TableTelemetry, TelemetrySample{}},
		{TableTruth, Truth{}},
		{TableCapacity, CapacityPoint{}},
		{TableEnvelope, CapacityEnvelope{}},
		{TableProfileMeta, ProfileMeta{}},
		{TableProfileRate, ProfileRate{}},
		{TableProfileIAT, ProfileIAT{}},
		{TableProfileIATFit, ProfileIATFit{}},
		{TableProfileDispersion, ProfileDispersion{}},
		{TableProfileLength, ProfileLength{}},
		{TableProfileSession, ProfileSession{}},
		{TableProfileHitCurve, ProfileHitCurve{}},
		{TableProfileJoint, ProfileJoint{}},
		{TableProfileJointStat, ProfileJointStat{}},
		{TableProfileSessStat, ProfileSessionStat{}},
		{TableProfileSessGap, ProfileSessionGap{}},
		{TableProfileGrowth, ProfileGrowth{}},
		{TableProfileRoot, ProfileRoot{}},
		{TableProfilePopularity, ProfilePopularity{}},
		{TableProfileReuse, ProfileReuse{}},
		{TableProfileCrossShare, ProfileCrossShare{}},
		{TableProfileBurst, ProfileBurst{}},
		{TableProfileLatency, ProfileLatency{}},
		{TableProfilePart, ProfilePart{}},
		{TableProfilePartRow, ProfilePartRow{}},
		{TableProfilePartBlock, ProfilePartBlock{}},
		{TableProfileDrift, ProfileDrift{}},
	}
}
