// Package promfile hands the metrics of a job that ends to Prometheus, which scrapes only what runs: as a file for a node
// exporter's textfile collector, or by a push to a Pushgateway.
package promfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"tailgate/internal/atomicfile"
)

// Text is what g gathers, in the text format.
func Text(g prometheus.Gatherer) ([]byte, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering metrics: %w", err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return nil, fmt.Errorf("writing metrics: %w", err)
		}
	}
	return b.Bytes(), nil
}

// WriteFile writes metrics to a file that a collector may read at any time: the old ones or the new ones, whole.
func WriteFile(path string, text []byte) error {
	if err := atomicfile.WriteFile(path, text); err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	return nil
}

// Limits of a push.
const (
	tries   = 3
	patient = 10 * time.Second // for one try
)

// GroupURL is the URL to push to: a gateway's own, to which the group (job, then label and value by turns) is added, or
// one that names a group already (…/metrics/job/…), which stays. What is pushed replaces what the group had.
func GroupURL(gateway, job string, labels ...string) (string, error) {
	u, err := url.Parse(gateway)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is not the URL of a Pushgateway, such as http://pushgateway:9091", redact(gateway, u))
	}
	if strings.Contains(u.Path, "/metrics/job/") {
		return u.String(), nil
	}
	u = u.JoinPath("metrics", "job", job)
	for _, part := range labels {
		u = u.JoinPath(strings.ReplaceAll(part, "/", "-"))
	}
	return u.String(), nil
}

// redact shows no password.
func redact(text string, u *url.URL) string {
	if u != nil {
		return u.Redacted()
	}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return "…" + text[at:]
	}
	return text
}

// Push puts metrics into a group of a Pushgateway, in the place of what was there. A user and password in the URL are
// sent as basic authentication, and are in no error. What may pass is tried again.
func Push(ctx context.Context, group string, text []byte) error {
	u, err := url.Parse(group)
	if err != nil {
		return fmt.Errorf("pushing metrics: %q is not a URL", redact(group, nil))
	}
	client := &http.Client{Timeout: patient, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for try, wait := 1, time.Second; ; try, wait = try+1, 2*wait {
		again, err := put(ctx, client, u, text)
		if err == nil {
			return nil
		}
		if !again || try == tries || ctx.Err() != nil {
			return fmt.Errorf("pushing metrics to %s: %w", u.Redacted(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// put tries once; again tells that another try may do better.
func put(ctx context.Context, client *http.Client, u *url.URL, text []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	resp, err := client.Do(req)
	if err != nil {
		var told *url.Error
		if errors.As(err, &told) {
			err = told.Err // without the URL
		}
		return true, err
	}
	defer resp.Body.Close()
	reason, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	return resp.StatusCode >= 500, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(reason)))
}
