package sim_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tailgate/schemas"
	"tailgate/sim"
)

// BenchmarkVirtual is one request of 200 + 20 tokens among about twenty.
func BenchmarkVirtual(b *testing.B) {
	c := mustCluster(b, mustConfig(b, "sim:"))
	one := row(200, 20)
	tokens := 0
	b.ReportAllocs()
	b.ResetTimer()
	drive(c, poisson(1, b.N, 80, func(int) schemas.TraceRow { return one }), func(schemas.EngineEvent) { tokens++ })
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
}

// BenchmarkStream is one streamed answer of 100 tokens over loopback, client included, on an engine of 100 µs
// steps.
func BenchmarkStream(b *testing.B) {
	url := "http://" + loopback(b, "sim:a=.1,b=0,c=0,d=0,e=0", sim.ServerOptions{})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	b.SetParallelism(50)
	start := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":100,"stream":true}`))
			if err != nil {
				b.Error(err)
				return
			}
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n == 0 {
				b.Error(fmt.Errorf("%d bytes: %w", n, err))
			}
			resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)*100/time.Since(start).Seconds(), "tokens/s")
}
