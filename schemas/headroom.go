package schemas

// Headroom holds the traffic of a day against what a cluster was tested to hold: the object that `tailgate envelope headroom
// --json` prints. Rates are requests/s; null means not known, or not tested.
type Headroom struct {
	Definition string  `json:"definition"`
	Envelope   string  `json:"envelope"` // its name
	Day        string  `json:"day"`      // UTC, the last one of the profiles; "" = their traffic has no wall time
	FirstDay   string  `json:"first_day"`
	Days       int     `json:"days"`          // with a profile
	CoveredH   float64 `json:"covered_hours"` // of the day, by its profiles
	// DecidesS is the width of the bins, in seconds, whose highest rate decides.
	DecidesS int     `json:"decides_s"`
	Growth   float64 `json:"growth"` // that the envelope declares, 1.2 = 20 %
	OverSafe bool    `json:"over_safe"`
	// OverNMinus1 tells that the traffic is more than was tested with one replica less.
	OverNMinus1 bool `json:"over_n_minus_1"`
	// Stale tells that the traffic left what was tested; Moved says where. Null = the envelope does not say what was tested.
	Stale *bool           `json:"stale"`
	Moved []HeadroomMoved `json:"moved"`
	Again []string        `json:"test_again"` // cells, CLASS/PATTERN
	Rows  []HeadroomRow   `json:"rows"`
	Hours []HeadroomHour  `json:"hours"` // empty: the number of replicas or the time of day is not known
	Daily []HeadroomDaily `json:"daily"` // what trends come from, oldest first
	Notes []string        `json:"notes"`
}

// HeadroomDaily is the highest rate of a class on a day, in the bins that decide.
type HeadroomDaily struct {
	Day   string  `json:"day"`
	Class string  `json:"class"`
	Peak  float64 `json:"peak_request_rate"`
}

// Headroom states of a row.
const (
	HeadroomOK          = "ok"
	HeadroomOverNMinus1 = "over_n_minus_1" // holds, but not with one replica less
	HeadroomOverSafe    = "over_safe"
	HeadroomUntested    = "not_confirmed" // the envelope has no confirmed rate
	HeadroomNoTraffic   = "no_traffic"    // the profile has no request of the class, or no rows for classes
)

// HeadroomRow is a class under a pattern, as the envelope has it.
type HeadroomRow struct {
	Class   string   `json:"class"` // mix = all
	Pattern string   `json:"pattern"`
	Load    string   `json:"load"`
	State   string   `json:"state"`
	Decides bool     `json:"decides"`  // of the class's patterns: real, else the one with the lowest rate
	SafeQPS *float64 `json:"safe_qps"` // null = not confirmed
	NMinus1 *float64 `json:"n_minus_1_request_rate"`
	// GrowthHolds tells that the peak times Growth keeps the rate with one replica less, or where that was not tested Safe QPS.
	GrowthHolds *bool          `json:"growth_holds"`
	MeanRate    *float64       `json:"mean_request_rate"`
	Peaks       []HeadroomPeak `json:"peaks"`
	Trend       *HeadroomTrend `json:"trend"` // of rows that decide
}

// HeadroomPeak is the highest rate of the day in bins of a width. A share is of the tested rate: used + headroom = 1.
type HeadroomPeak struct {
	WidthS          int      `json:"width_s"`
	Peak            float64  `json:"peak_request_rate"`
	At              string   `json:"at"`               // begin of its bin, RFC 3339; "" = no wall time
	P99             float64  `json:"p99_request_rate"` // over the bins of the covered time
	Used            *float64 `json:"used_share"`       // of Safe QPS
	Headroom        *float64 `json:"headroom_share"`
	HeadroomRate    *float64 `json:"headroom_request_rate"`
	UsedNMinus1     *float64 `json:"n_minus_1_used_share"`
	HeadroomNMinus1 *float64 `json:"n_minus_1_headroom_share"`
	RateNMinus1     *float64 `json:"n_minus_1_headroom_request_rate"`
}

// States of a trend.
const (
	TrendNeedsDays = "needs_days" // too few days to tell
	TrendNone      = "no_trend"   // the interval of the slope holds 0
	TrendGrows     = "grows"
	TrendFalls     = "falls"
	TrendBreached  = "breached" // the level is above Safe QPS
)

// HeadroomTrend tells when the traffic outgrows Safe QPS if it goes on as in the last weeks. Intervals are 95 %.
type HeadroomTrend struct {
	State     string   `json:"state"`
	Days      int      `json:"days"`               // that it comes from
	NeedsDays int      `json:"needs_days"`         // more days until it can be told; 0 = it can
	Level     *float64 `json:"level_request_rate"` // the middle of the weeks' highest peaks, carried to the last day
	Weekly    *float64 `json:"weekly_change"`      // .01 = 1 % a week
	WeeklyLo  *float64 `json:"weekly_change_lower"`
	WeeklyHi  *float64 `json:"weekly_change_upper"`
	Breach    *float64 `json:"days_until_breach"` // null = never at this slope, or not told
	BreachLo  *float64 `json:"days_until_breach_lower"`
	BreachHi  *float64 `json:"days_until_breach_upper"` // null = no end
	Text      string   `json:"text"`
}

// HeadroomHour is how many replicas of the tested kind an hour of the UTC day needs.
type HeadroomHour struct {
	Hour            int     `json:"hour"`
	Class           string  `json:"class"`
	Peak            float64 `json:"peak_request_rate"` // the highest of the hour over the days
	Replicas        int     `json:"replicas"`
	ReplicasNMinus1 int     `json:"replicas_n_minus_1"` // so that one may be lost
	PerReplica      float64 `json:"per_replica_request_rate"`
	Days            int     `json:"days"`
	// Tested tells that a cluster of so many replicas was tested; else the rate of one is carried over.
	Tested bool `json:"tested"`
}

// HeadroomMoved is a figure of the traffic that left the band in which the envelope was tested.
type HeadroomMoved struct {
	Class  string  `json:"class"`
	Figure string  `json:"figure"` // mix_share, input_p50 …, hit_ratio_at_N
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Text   string  `json:"text"`
}
