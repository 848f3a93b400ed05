package bpe

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"tailgate/internal/textcorpus"
)

// BenchmarkNFC normalizes 1 MB of text, beside what x/text takes for the same (on newer tables).
func BenchmarkNFC(b *testing.B) {
	for _, kind := range []string{textcorpus.Mix, textcorpus.Chinese, textcorpus.Others, textcorpus.Marks} {
		b.Run(kind, func(b *testing.B) {
			docs, size := benchDocuments(b, kind)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var n normalizer
			ours, theirs := time.Hour, time.Hour
			var buf []byte
			b.SetBytes(int64(size))
			for b.Loop() {
				began := threadTime()
				for _, d := range docs {
					n.nfc(d)
				}
				ours = min(ours, threadTime()-began)
				began = threadTime()
				for _, d := range docs {
					if !norm.NFC.IsNormal(d) {
						buf = norm.NFC.Append(buf[:0], d...)
					}
				}
				theirs = min(theirs, threadTime()-began)
			}
			b.ReportMetric(float64(size)/1e6/ours.Seconds(), "best_MB/s")
			b.ReportMetric(theirs.Seconds()/ours.Seconds(), "x_vs_xtext")
		})
	}
}
