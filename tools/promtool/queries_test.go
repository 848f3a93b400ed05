// Package promtool reads alerts and the queries of the dashboard with Prometheus's own parser.
package promtool

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// Prometheus reads the alerts, templates and all.
func TestAlertsAreRead(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../../deploy/prometheus/alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 || len(groups.Groups) != 1 || len(groups.Groups[0].Rules) < 15 {
		t.Errorf("%v", errs)
	}
}

// The parser takes every query of the dashboard, and would not take one that is broken.
func TestDashboardQueriesParse(t *testing.T) {
	data, err := os.ReadFile("../../deploy/grafana/tailgate.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	p, n := parser.NewParser(parser.Options{}), 0
	for _, panel := range board.Panels {
		for _, q := range panel.Targets {
			n++
			if _, err := p.ParseExpr(q.Expr); err != nil {
				t.Errorf("%s: %s: %v", panel.Title, q.Expr, err)
			}
			if _, err := p.ParseExpr(strings.Replace(q.Expr, "(", "((", 1)); err == nil {
				t.Errorf("%s: %s is taken with a parenthesis too many", panel.Title, q.Expr)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d queries", n)
	}
}
