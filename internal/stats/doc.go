// Package stats holds the few statistics that verdicts rest on, each from its published method: nearest-rank
// quantiles by selection and their intervals by order statistics, exact binomial bounds, the autocorrelation time of a
// series, robust slopes and middles, least squares and the jackknife, the distance between two samples, and the test of
// paired shares.
//
// It is not a statistics library: nothing is here that no stage uses, and nothing knows of requests or rules.
// Slices of numbers go in, numbers come out. Functions are pure except Select, which reorders its argument;
// NaN is never a valid input.
package stats
