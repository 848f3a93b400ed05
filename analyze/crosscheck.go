package analyze

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// CrossChecks are two other upper bounds of the share beyond a rule's limit, at the gate's confidence. They do not
// decide: batch means pass too easily near the limit, clusters never on short runs.
type CrossChecks struct {
	BatchUpper   Figure `json:"batch_upper"` // by the means of 12 batches of consecutive requests; null under 12 requests
	BatchMinutes Figure `json:"batch_minutes"`
	ClusterUpper Figure `json:"cluster_upper"` // by clusters of slow requests, one more added
	Clusters     int    `json:"clusters"`      // seen
}

// batches is the number of batches of the batch means.
const batches = 12

// burstSeconds is the least length of the cluster that is added to those that were seen.
const burstSeconds = 15

// crossCheck bounds the share beyond the limit in the two other ways.
func (s *rowSample) crossCheck(l Limit, minutes, conf float64) *CrossChecks {
	c := &CrossChecks{BatchUpper: unknown, BatchMinutes: unknown, ClusterUpper: unknown}
	n := len(s.values)
	if n >= batches {
		c.BatchUpper, c.BatchMinutes = Figure(batchUpper(s.values, l, conf)), Figure(minutes/batches)
	}
	if minutes > 0 {
		sizes := clusterSizes(s.values, l)
		c.Clusters = len(sizes)
		c.ClusterUpper = Figure(clusterUpper(sizes, n, float64(n)/(60*minutes)*burstSeconds, conf))
	}
	return c
}

// batchUpper is the mean of the batches' shares plus Student's t times its standard error.
func batchUpper(values []float64, l Limit, conf float64) float64 {
	var shares [batches]float64
	mean := 0.0
	for b := range shares {
		part := values[len(values)*b/batches : len(values)*(b+1)/batches]
		for _, x := range part {
			if l.breaks(x) {
				shares[b] += 1 / float64(len(part))
			}
		}
		mean += shares[b] / batches
	}
	squares := 0.0
	for _, v := range shares {
		squares += (v - mean) * (v - mean)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: batches - 1}.Quantile(conf)
	return min(1, mean+t*math.Sqrt(squares/(batches-1)/batches))
}

// clusterSizes counts the values beyond the limit in each cluster, which begins at one and ends at the first value
// within a quarter of the limit.
func clusterSizes(values []float64, l Limit) []float64 {
	quarter := l
	quarter.Value /= 4
	var sizes []float64
	open := false
	for _, x := range values {
		switch {
		case l.breaks(x):
			if !open {
				sizes = append(sizes, 0)
				open = true
			}
			sizes[len(sizes)-1]++
		case !quarter.breaks(x):
			open = false
		}
	}
	return sizes
}

// clusterUpper takes clusters as independent and adds one as large as the largest, at least as large as least.
func clusterUpper(sizes []float64, n int, least, conf float64) float64 {
	added, sum, squares := least, 0.0, 0.0
	for _, s := range sizes {
		added, sum, squares = max(added, s), sum+s, squares+s*s
	}
	z := distuv.UnitNormal.Quantile(conf)
	return min(1, (sum+added+z*math.Sqrt(squares+added*added))/float64(n))
}

// text is the cross-checks in a few words.
func (c *CrossChecks) text(allowed Figure) string {
	s := ""
	if c.BatchUpper.Known() {
		s = fmt.Sprintf("batch means (%d of %s min) at most %s, ", batches, short(c.BatchMinutes), share(c.BatchUpper))
	}
	return fmt.Sprintf("cross-checks: %sclusters (%d seen) at most %s, %s allowed", s, c.Clusters, share(c.ClusterUpper), share(allowed))
}
