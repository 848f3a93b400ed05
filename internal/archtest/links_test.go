package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	unslug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are those of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		plain := strings.ToLower(strings.TrimSpace(link.ReplaceAllString(h[1], "")))
		out[strings.ReplaceAll(unslug.ReplaceAllString(plain, ""), " ", "-")] = true
	}
	return out
}

// TestLinksLeadSomewhere follows every link between the pages of the repository, to its file and its heading.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "demo-out" || d.Name() == "dist") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(data), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			followed++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			target, err := os.ReadFile(to)
			if st, statErr := os.Stat(to); statErr == nil && st.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: a link to %s, which is not there", path, m[1])
			} else if anchor != "" && !anchors(string(target))[anchor] {
				t.Errorf("%s: a link to %s, which has no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if followed < 50 {
		t.Errorf("only %d links were seen", followed)
	}
}
