package anonymize_test

import (
	"os"
	"path/filepath"
	"testing"

	"tailgate/anonymize"
	"tailgate/internal/fault"
)

func topicToken(t *testing.T, d *anonymize.Keyring, epoch string) (topic, tenant string) {
	t.Helper()
	h, err := anonymize.NewHasher(load(t, d, epoch), anonymize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h.Token(anonymize.KindTopic, []byte("tides")), h.Token(anonymize.KindTenant, []byte("tides"))
}

// A topic keeps its name over pseudonym epochs, a tenant does not, and no key is needed twice.
func TestTopicNamesOutliveTheirEpoch(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, dir string){
		"new folder": func(*testing.T, string) {},
		"folder from before there was a key of topics": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "topics.key")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, dir := initKeys(t)
			before(t, dir)
			topic, tenant := topicToken(t, d, "auto")
			first, _ := d.List(t.Context())
			newEpoch(t, d, day0.Add(anonymize.PseudonymLife))
			renamed, other := topicToken(t, d, "auto")
			if renamed != topic || other == tenant {
				t.Errorf("topic %s → %s, tenant %s → %s", topic, renamed, tenant, other)
			}
			for _, e := range first {
				if _, err := d.Destroy(t.Context(), e.ID); err != nil {
					t.Fatal(err)
				}
			}
			newEpoch(t, d, day0.Add(3*anonymize.PseudonymLife))
			if renamed, _ := topicToken(t, d, "auto"); renamed != topic {
				t.Errorf("topic %s → %s after its first key was destroyed", topic, renamed)
			}
		})
	}
}

// A folder without the file whose only pseudonym key is destroyed still has the name of its topics.
func TestDestroyKeepsTheTopicKey(t *testing.T) {
	d, dir := initKeys(t)
	topic, _ := topicToken(t, d, "auto")
	if err := os.Remove(filepath.Join(dir, "topics.key")); err != nil {
		t.Fatal(err)
	}
	epochs, _ := d.List(t.Context())
	for _, e := range epochs {
		if _, err := d.Destroy(t.Context(), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	newEpoch(t, d, day0.Add(anonymize.PseudonymLife))
	if renamed, _ := topicToken(t, d, "auto"); renamed != topic {
		t.Errorf("topic %s → %s", topic, renamed)
	}
}

func TestUnsafeTopicKeyIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"readable by others": func(p string) error { return os.Chmod(p, 0o644) },
		"short":              func(p string) error { return os.Truncate(p, 7) },
		"a link":             func(p string) error { return os.Rename(p, p+".x") },
	} {
		t.Run(name, func(t *testing.T) {
			d, dir := initKeys(t)
			path := filepath.Join(dir, "topics.key")
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info, err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if name == "a link" {
				if err := os.Symlink(path+".x", path); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := d.Load(t.Context(), "auto"); fault.Of(err) != fault.Key {
				t.Errorf("%v", err)
			}
		})
	}
}
