package anonymize

import (
	"path/filepath"
	"testing"

	"tailgate/tools/chats"
)

const templatesDir = "testdata/templates"

func loadChats(t testing.TB) []*chats.Chat {
	t.Helper()
	all, err := chats.Load(filepath.Join(templatesDir, "chats.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func jinjaName(name string) string { return jinjaPrefix + filepath.Join(templatesDir, name+".jinja") }

// templateNames are the fast paths and the templates of testdata.
func templateNames(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(templatesDir, "*.jinja"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d templates: %v", len(files), err)
	}
	names := []string{TemplatePlain, TemplateChatML, TemplateLlama3}
	for _, f := range files {
		names = append(names, jinjaPrefix+f)
	}
	return names
}
