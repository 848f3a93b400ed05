package refresh

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tailgate/internal/promfile"
)

// metricsPrefix begins the name of every metric of a refresh.
const metricsPrefix = "tailgate_refresh_"

// MetricsJob is the job under which a refresh is pushed.
const MetricsJob = "tailgate_refresh"

// outcomes are all values of Status.Outcome.
func outcomes() []string {
	return []string{OutcomeDone, OutcomeNoNewData, OutcomeLate, OutcomeDrift, OutcomeFailed}
}

// Metrics is the status as Prometheus metrics. They are gauges of this run; what a run did not look at (no drift to
// compare with, no envelope) is absent rather than 0.
func Metrics(s *Status) (prometheus.Gatherer, error) {
	m := gauges{registry: prometheus.NewRegistry(), vectors: map[string]*prometheus.GaugeVec{}}
	m.ofRun(s)
	m.ofSteps(s.Steps)
	m.ofIngest(s.Ingest)
	m.ofDays(s)
	m.ofKeys(s)
	if d := s.Drift; d != nil && d.Against != "" {
		m.set("drift_compared_metrics", "Metrics that were compared with the last good day.", float64(d.Metrics))
		m.set("drift_metrics", "Metrics above their limit.", float64(len(d.Drifted)))
	}
	if p := s.Privacy; p != nil {
		m.set("canary_found", "1 where this binary let a planted text through, else 0.", truth(p.Canary != "clean"))
		m.set("suppressed_labels", "Labels of small groups that were put together.", float64(p.SuppressedLabels))
		m.set("shared_block_share", "Share of blocks whose id another request has too.", p.SharedBlocks)
	}
	m.ofHeadroom(s.Headroom)
	if r := s.Retained; r != nil {
		m.set("removed_files", "Files and folders that retention removed.", float64(len(r.Removed)))
		m.set("removed_bytes", "Bytes that retention removed.", float64(r.RemovedBytes))
		m.set("destroyed_keys", "Keys that this run destroyed.", float64(len(r.DestroyedKeys)))
		m.set("kept_past_time", "What is past its time and was kept.", float64(len(r.Kept)))
	}
	return m.registry, m.err
}

// gauges makes metrics as they are set.
type gauges struct {
	registry *prometheus.Registry
	vectors  map[string]*prometheus.GaugeVec
	err      error
}

// set sets a gauge; labels are name and value by turns, the names the same at each call for one metric.
func (m *gauges) set(name, help string, value float64, labels ...string) {
	set := prometheus.Labels{}
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names = append(names, labels[i])
		set[labels[i]] = labels[i+1]
	}
	v, ok := m.vectors[name]
	if !ok {
		v = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metricsPrefix + name, Help: help}, names)
		m.vectors[name] = v
		m.err = errors.Join(m.err, m.registry.Register(v))
	}
	v.With(set).Set(value)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// stamp is unix time; 0 for a time that is not known.
func stamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1e3
}

// dayEnd is the end of a UTC day in unix time; 0 for "".
func dayEnd(day string) float64 {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return 0
	}
	return stamp(t.AddDate(0, 0, 1))
}

func (m *gauges) ofRun(s *Status) {
	for _, o := range outcomes() {
		m.set("outcome", "1 for the outcome of this run, 0 for the others.", truth(o == s.Outcome), "outcome", o)
	}
	m.set("exit_code", "Exit code of this run without --cron.", float64(s.Exit))
	m.set("start_time_seconds", "When this run began, in unix time.", stamp(s.StartedAt))
	m.set("end_time_seconds", "When this run ended, in unix time.", stamp(s.EndedAt))
	m.set("day_end_time_seconds", "End of the day that this run was for, in unix time.", dayEnd(s.Day))
	m.set("last_good_day_end_time_seconds", "End of the newest day with a complete set of outputs, in unix time; 0 = none yet.", dayEnd(s.LastGoodDay))
	m.set("last_good_time_seconds", "When it became that, in unix time; 0 = none yet.", stamp(s.LastGoodAt))
}

// ofSteps sums over the days of the run.
func (m *gauges) ofSteps(list []StepReport) {
	sums := map[Step]*StepReport{}
	failed := map[Step]bool{}
	for _, r := range list {
		if sums[r.Step] == nil {
			sums[r.Step] = &StepReport{}
		}
		of := sums[r.Step]
		of.Seconds += r.Seconds
		of.CPUSeconds += r.CPUSeconds
		of.Bytes += r.Bytes
		of.Rows += r.Rows
		failed[r.Step] = failed[r.Step] || r.State == StepFailed
	}
	for step, of := range sums {
		m.set("step_seconds", "Time that a step took.", of.Seconds, "step", string(step))
		m.set("step_cpu_seconds", "CPU time that a step took.", of.CPUSeconds, "step", string(step))
		m.set("step_bytes", "Bytes that a step wrote.", float64(of.Bytes), "step", string(step))
		m.set("step_rows", "Rows that a step worked on.", float64(of.Rows), "step", string(step))
		m.set("step_failed", "1 for a step that failed, else 0.", truth(failed[step]), "step", string(step))
	}
}

func (m *gauges) ofIngest(i *IngestStatus) {
	if i == nil {
		return
	}
	m.set("ingest_records", "Offsets of the log that this run consumed.", float64(i.Records))
	m.set("ingest_rows", "Rows made of them.", float64(i.Rows))
	m.set("ingest_segments", "Segments published.", float64(i.Segments))
	m.set("lost_records", "Offsets that retention deleted before they were read.", float64(i.Lost))
	m.set("dead_letters", "Records that could not be read.", float64(sum(i.Dead)))
	m.set("skipped_records", "Records that are not for the lake.", float64(sum(i.Skipped)))
	for reason, n := range i.Dead {
		m.set("not_rows", "Records that gave no row, by kind and reason.", float64(n), "kind", "dead", "reason", reason)
	}
	for reason, n := range i.Skipped {
		m.set("not_rows", "Records that gave no row, by kind and reason.", float64(n), "kind", "skipped", "reason", reason)
	}
	waiting := int64(0)
	for _, p := range i.Partitions {
		if p.Waiting < 0 {
			waiting = -1
			break
		}
		waiting += p.Waiting
	}
	m.set("waiting_records", "Offsets left to the end of the log; -1 when not known.", float64(waiting))
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (m *gauges) ofDays(s *Status) {
	var late, refused, waiting int64
	for _, d := range s.Days {
		late, refused, waiting = late+d.Late, refused+d.Refused, waiting+d.Waiting
		if d.Day == s.Day {
			m.set("day_rows", "Requests of the day that this run was for.", float64(d.Rows))
			m.set("day_complete", "1 where every log was read beyond that day's end, else 0.", truth(d.Complete))
		}
	}
	m.set("late_rows", "Rows that came after an earlier build and are in this one.", float64(late))
	m.set("refused_rows", "Rows under another epoch, that no build takes.", float64(refused))
	m.set("waiting_late_rows", "Late rows that no live build has.", float64(waiting))
}

func (m *gauges) ofKeys(s *Status) {
	type kind struct {
		n, overdue int
		oldest     time.Time
		due        time.Time
	}
	kinds := map[string]*kind{"block": {}, "pseudonym": {}}
	for _, k := range s.Keys {
		of := kinds[k.Kind]
		if of == nil {
			of = &kind{}
			kinds[k.Kind] = of
		}
		of.n++
		if k.Overdue {
			of.overdue++
		}
		if of.oldest.IsZero() || k.CreatedAt.Before(of.oldest) {
			of.oldest = k.CreatedAt
		}
		if of.due.IsZero() || !k.DueAt.IsZero() && k.DueAt.Before(of.due) {
			of.due = k.DueAt
		}
	}
	for name, k := range kinds {
		m.set("keys", "Keys that exist.", float64(k.n), "kind", name)
		m.set("keys_overdue", "Keys that should have been destroyed.", float64(k.overdue), "kind", name)
		if k.n > 0 {
			m.set("key_oldest_time_seconds", "When the oldest key was made, in unix time.", stamp(k.oldest), "kind", name)
			m.set("key_due_time_seconds", "When the next key is to be destroyed, in unix time; 0 = not known.", stamp(k.due), "kind", name)
		}
	}
}

func (m *gauges) ofHeadroom(h *HeadroomStatus) {
	if h == nil {
		return
	}
	m.set("headroom_used_share", "Highest peak of the day as a share of Safe QPS.", h.UsedShare)
	m.set("headroom_used_share_n_minus_1", "Highest peak of the day as a share of what is safe with one replica less.", h.UsedShareMinus1)
	m.set("headroom_over", "1 where the peak was above what is safe, else 0.", truth(h.Over))
	m.set("headroom_stale_cells", "What of the day lies outside the tested band.", float64(len(h.Stale)))
	if h.DaysLeft != nil {
		m.set("headroom_days_until_breach", "Days until the peak reaches Safe QPS; absent where no breach is in sight.", *h.DaysLeft)
	}
}

// deliver writes the metrics where the file says. The night does not fail by it: what goes wrong is a warning.
func (c *MetricsConfig) deliver(ctx context.Context, text []byte, log *slog.Logger) {
	if c.Textfile != "" {
		if err := promfile.WriteFile(c.Textfile, text); err != nil {
			log.Warn("metrics were not written", "error", err.Error())
		}
	}
	if c.Push == "" {
		return
	}
	group, err := promfile.GroupURL(c.Push, MetricsJob)
	if err == nil {
		err = promfile.Push(context.WithoutCancel(ctx), group, text)
	}
	if err != nil {
		log.Warn("metrics were not pushed", "error", err.Error())
	}
}
