package refresh

import (
	"os"
	"testing"

	"github.com/goccy/go-yaml"
)

// The refresh file of the manifests is one that is read.
func TestDeployedConfig(t *testing.T) {
	f, err := os.Open("../deploy/kubernetes/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for docs := yaml.NewDecoder(f); ; {
		var doc struct {
			Kind string
			Data map[string]string
		}
		if err := docs.Decode(&doc); err != nil {
			t.Fatalf("no settings in base.yaml: %v", err)
		}
		if doc.Kind != "ConfigMap" {
			continue
		}
		c, err := ParseConfig("refresh.yaml", []byte(doc.Data["refresh.yaml"]), func(string) (string, bool) { return "", false })
		if err != nil || c.Root != "/data" || c.Metrics.Push == "" || len(c.Traces.Classes) != 3 {
			t.Errorf("%+v, %v", c, err)
		}
		return
	}
}
