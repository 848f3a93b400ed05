package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
)

// TestGuides runs every sh block of each guide, in order, as one shell script in an empty folder. BROKER is a
// Kafka: an in-process one, or that of TAILGATE_KAFKA.
func TestGuides(t *testing.T) {
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil || len(guides) == 0 {
		t.Fatalf("no guides: %v", err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	bin := t.TempDir()
	linkSelf(t, filepath.Join(bin, "tailgate"))
	for _, guide := range guides {
		t.Run(filepath.Base(guide), func(t *testing.T) {
			script, err := shellBlocks(guide)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), shell, "-euxc", script)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "BROKER="+testBroker(t), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// linkSelf makes the test binary a tailgate: TestMain looks at the name.
func linkSelf(t testing.TB, as string) {
	t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, as)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func testBroker(t *testing.T) string {
	t.Helper()
	if real := os.Getenv("TAILGATE_KAFKA"); real != "" {
		return "kafka://" + real
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return "kafka://" + c.ListenAddrs()[0]
}

// shellBlocks joins the sh blocks of a Markdown file.
func shellBlocks(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var script strings.Builder
	inside, fence := false, false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "```"):
			fence = !fence
			inside = fence && line == "```sh"
		case inside:
			fmt.Fprintln(&script, line)
		}
	}
	if fence || script.Len() == 0 {
		return "", errors.New("no sh blocks, or one without its end")
	}
	return script.String(), nil
}

// TestComposeFile holds the Docker way to start a development broker to the settings of the other.
func TestComposeFile(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy", "dev", "kafka")
	data, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image       string
			Environment map[string]any
		}
	}
	if err := yaml.Unmarshal(data, &compose); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, value := range compose.Services["kafka"].Environment {
		name = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "KAFKA_"), "_", "."))
		got[name] = fmt.Sprint(value)
	}
	want := map[string]string{}
	properties, err := os.ReadFile(filepath.Join(dir, "server.properties"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(properties)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			want[name] = value
		}
	}
	// Where it listens, where it writes and who controls it differ.
	for _, m := range []map[string]string{got, want} {
		for _, name := range []string{"listeners", "advertised.listeners", "log.dirs", "controller.quorum.voters",
			"controller.quorum.bootstrap.servers"} {
			delete(m, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	pom, err := os.ReadFile(filepath.Join(dir, "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(compose.Services["kafka"].Image, ":")
	if !strings.Contains(string(pom), "<version>"+version+"</version>") {
		t.Errorf("the image is of version %q, the download is not", version)
	}
}
