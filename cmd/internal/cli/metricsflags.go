package cli

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"tailgate/internal/promfile"
)

// metricsFlags say where the metrics of a command that ends go.
type metricsFlags struct {
	file, push string
	group      string // URL to push to
}

func (f *metricsFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "metrics-file", "", "file for Prometheus metrics of the run, for the node exporter's textfile collector")
	fl.StringVar(&f.push, "push", "", "URL of a Pushgateway that gets the metrics at the end; a push that fails is a warning")
}

// check reads --push. Labels, name and value by turns, tell the processes of one job apart; a value of "" is left out.
func (f *metricsFlags) check(job string, labels ...string) error {
	if f.push == "" {
		return nil
	}
	var group []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			group = append(group, labels[i], labels[i+1])
		}
	}
	var err error
	if f.group, err = promfile.GroupURL(f.push, job, group...); err != nil {
		return usage(err, "--push http://pushgateway:9091, or a URL with …/metrics/job/NAME")
	}
	return nil
}

// end writes the file, whose failure is an error, and pushes, whose failure is a warning. It does so after ^C too.
func (f *metricsFlags) end(ctx context.Context, a *app, g prometheus.Gatherer) error {
	if f.file == "" && f.group == "" {
		return nil
	}
	text, err := promfile.Text(g)
	if err == nil && f.file != "" {
		err = promfile.WriteFile(f.file, text)
	}
	if err != nil || f.group == "" {
		return err
	}
	if err := promfile.Push(context.WithoutCancel(ctx), f.group, text); err != nil {
		a.logger().Warn("metrics were not pushed", "error", err.Error())
	}
	return nil
}
