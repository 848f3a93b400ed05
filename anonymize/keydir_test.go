package anonymize_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize"
	"tailgate/internal/fault"
)

var day0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func initKeys(t *testing.T) (*anonymize.Keyring, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	d, err := anonymize.InitKeyDir(dir, day0)
	if err != nil {
		t.Fatal(err)
	}
	return d, dir
}

func newEpoch(t *testing.T, d *anonymize.Keyring, now time.Time) string {
	t.Helper()
	id, err := d.NewEpoch(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func load(t *testing.T, d *anonymize.Keyring, epoch string) *anonymize.Keys {
	t.Helper()
	k, err := d.Load(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func pseudonymEpoch(t *testing.T, d *anonymize.Keyring, k *anonymize.Keys) string {
	t.Helper()
	id, err := anonymize.PseudonymEpoch(t.Context(), d, k)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func list(t *testing.T, d *anonymize.Keyring) []anonymize.EpochInfo {
	t.Helper()
	epochs, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return epochs
}

func TestInitMakesPrivateFiles(t *testing.T) {
	d, dir := initKeys(t)
	want := []anonymize.EpochInfo{
		{ID: "b-20260102T030405.000000Z", Kind: "block", CreatedAt: day0},
		{ID: "p-20260102T030405.000000Z", Kind: "pseudonym", CreatedAt: day0},
	}
	if diff := cmp.Diff(want, list(t, d)); diff != "" {
		t.Error(diff)
	}
	var keys [][]byte
	for _, e := range want {
		path := filepath.Join(dir, e.ID+".key")
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
			t.Fatalf("%s: %v %v", path, info, err)
		}
		key, _ := os.ReadFile(path)
		keys = append(keys, key)
	}
	if bytes.Equal(keys[0], keys[1]) || bytes.Equal(keys[0], make([]byte, 32)) {
		t.Error("keys are not random")
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", info.Mode())
	}
	if _, err := anonymize.InitKeyDir(dir, day0); fault.Of(err) != fault.Key || fault.Hint(err) == "" {
		t.Errorf("a second init: %v", err)
	}
}

func TestEpochsOfTwoKinds(t *testing.T) {
	d, _ := initKeys(t)
	first := load(t, d, "").Epoch()
	second := newEpoch(t, d, day0.Add(24*time.Hour))
	same := newEpoch(t, d, day0) // the clock went back
	late := newEpoch(t, d, day0.Add(anonymize.PseudonymLife+time.Second))
	newest := load(t, d, "auto")
	if got := pseudonymEpoch(t, d, newest); newest.Epoch() != late || got != "p"+late[1:] {
		t.Errorf("newest: %s with %s, want %s with its own pseudonym key", newest.Epoch(), got, late)
	}
	if first >= second || second >= same || same >= late {
		t.Errorf("epochs are not in order: %s %s %s %s", first, second, same, late)
	}
	for _, epoch := range []string{first, second, same} {
		if got := pseudonymEpoch(t, d, load(t, d, epoch)); got != "p"+first[1:] {
			t.Errorf("epoch %s uses pseudonym key %s, want the first", epoch, got)
		}
	}
	// Names outlive block epochs; block ids do not.
	a, b := newHasher(t, load(t, d, first), anonymize.Options{}), newHasher(t, load(t, d, second), anonymize.Options{})
	if a.Token("tenant", []byte("quillmere")) != b.Token("tenant", []byte("quillmere")) {
		t.Error("a new block epoch renamed the tenants")
	}
	text := strings.Repeat("tide", 99)
	if n := shared(blocks(t, a, completion(text)), blocks(t, b, completion(text))); n != 0 {
		t.Errorf("two block epochs share %d ids", n)
	}
	c := newHasher(t, load(t, d, late), anonymize.Options{})
	if a.Token("tenant", []byte("quillmere")) == c.Token("tenant", []byte("quillmere")) {
		t.Error("a new pseudonym epoch kept the names")
	}
}

// Each row damages a good folder in one way; the error must be a key fault that tells the mend.
func TestUnsafeKeysAreRefused(t *testing.T) {
	const key = "b-20260102T030405.000000Z.key"
	change := func(f func(path string) error) func(string) error {
		return func(dir string) error { return f(filepath.Join(dir, key)) }
	}
	for _, tc := range []struct {
		name   string
		damage func(dir string) error
		hint   string
	}{
		{"group can read the key", change(func(p string) error { return os.Chmod(p, 0o640) }), "chmod 600 "},
		{"world can read the key", change(func(p string) error { return os.Chmod(p, 0o604) }), "chmod 600 "},
		{"link", change(func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) }), "key itself"},
		{"short", change(func(p string) error { return os.Truncate(p, 31) }), "new epoch"},
		{"long", change(func(p string) error { return os.Truncate(p, 33) }), "new epoch"},
		{"empty", change(func(p string) error { return os.Truncate(p, 0) }), "new epoch"},
		{"all zero", change(func(p string) error { return os.WriteFile(p, make([]byte, 32), 0o600) }), "new epoch"},
		{"folder in its place", change(func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }), ""},
		{"no block key", change(os.Remove), "keys new-epoch"},
		{"no pseudonym key", change(func(p string) error { return os.Remove(strings.Replace(p, "b-", "p-", 1)) }), "new-epoch"},
		{"others can enter the folder", func(dir string) error { return os.Chmod(dir, 0o710) }, "chmod 700 "},
		{"no folder", os.RemoveAll, "keys init"},
		{"folder is a link", func(dir string) error { return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir)) }, "folder itself"},
		{"folder is a file", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, dir := initKeys(t)
			if err := tc.damage(dir); err != nil {
				t.Fatal(err)
			}
			err := openAndLoad(t.Context(), dir, "auto")
			if fault.Of(err) != fault.Key || !strings.Contains(fault.Hint(err), tc.hint) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, hint %q, want a key fault with hint %q", err, fault.Hint(err), tc.hint)
			}
		})
	}
}

func openAndLoad(ctx context.Context, dir, epoch string) error {
	d, err := anonymize.OpenKeyDir(dir)
	if err == nil {
		_, err = d.Load(ctx, epoch)
	}
	return err
}

func TestForeignOwnerIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	_, dir := initKeys(t)
	for _, path := range []string{filepath.Join(dir, "b-20260102T030405.000000Z.key"), dir} {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Skip(err)
		}
		if err := openAndLoad(t.Context(), dir, ""); fault.Of(err) != fault.Key || !strings.Contains(fault.Hint(err), "chown") {
			t.Errorf("%s of another user: %v", path, err)
		}
		os.Chown(path, 0, -1)
	}
}

func TestDestroy(t *testing.T) {
	d, dir := initKeys(t)
	epoch := newEpoch(t, d, day0.Add(time.Hour))
	path := filepath.Join(dir, epoch+".key")
	was, _ := os.ReadFile(path)
	twin := filepath.Join(dir, "twin") // a second name of the same file shows that the bytes were overwritten
	if err := os.Link(path, twin); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil { // an unsafe key can be destroyed
		t.Fatal(err)
	}
	if _, err := d.Destroy(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	if now, _ := os.ReadFile(twin); bytes.Equal(now, was) || len(now) != 32 {
		t.Errorf("the key's bytes were not overwritten")
	}
	if _, err := d.Load(t.Context(), epoch); !errors.Is(err, anonymize.ErrDestroyed) || fault.Of(err) != fault.Key {
		t.Errorf("loading it: %v", err)
	}
	if got := load(t, d, "").Epoch(); got != "b-20260102T030405.000000Z" {
		t.Errorf("newest is %s", got)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "destroyed.jsonl"))
	for _, want := range []string{epoch, `"result":"destroyed"`, `"at":"20`, anonymize.DestroyNotice} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
	if _, err := d.Destroy(t.Context(), epoch); err == nil || fault.Of(err) != fault.Key {
		t.Errorf("destroying it again: %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "destroyed.jsonl")); !bytes.Equal(log, after) {
		t.Errorf("a key that is not there was logged: %s", after)
	}
}

func TestDestroyFollowsNoLink(t *testing.T) {
	d, dir := initKeys(t)
	victim := filepath.Join(t.TempDir(), "victim")
	os.WriteFile(victim, []byte("precious"), 0o600)
	path := filepath.Join(dir, "b-20260102T030405.000000Z.key")
	os.Remove(path)
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Destroy(t.Context(), "b-20260102T030405.000000Z"); err == nil {
		t.Error("a link was destroyed as if it were the key")
	}
	if got, _ := os.ReadFile(victim); string(got) != "precious" {
		t.Errorf("the file behind the link holds %q", got)
	}
	if log, _ := os.ReadFile(filepath.Join(dir, "destroyed.jsonl")); !strings.Contains(string(log), `"result":"failed`) {
		t.Errorf("the failure is not in the log: %s", log)
	}
}

func TestEpochNamesAreChecked(t *testing.T) {
	d, _ := initKeys(t)
	for _, epoch := range []string{"../b-20260102T030405.000000Z", "b-20260102T030405.000000Z/../x", "b-", "p-20260102T030405.000000Z",
		"b-20261302T030405.000000Z", "b-20270102T030405.000000Z", "Auto"} {
		if _, err := d.Load(t.Context(), epoch); fault.Of(err) != fault.Key || fault.Hint(err) == "" {
			t.Errorf("Load(%q): %v", epoch, err)
		}
	}
	for _, epoch := range []string{"", "auto", "../x", "b-20260102T030405.000000Z.key"} {
		if _, err := d.Destroy(t.Context(), epoch); err == nil {
			t.Errorf("Destroy(%q) did something", epoch)
		}
	}
	if n := len(list(t, d)); n != 2 {
		t.Errorf("%d keys are left, want 2", n)
	}
}

func TestKeysPrintNoBytes(t *testing.T) {
	k := fixedKeys(t, bytes.Repeat([]byte{0xAB}, 32), bytes.Repeat([]byte{0xCD}, 32))
	h := newHasher(t, k, anonymize.Options{})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%X", "%q", "%o", "%c", "%U"} {
		for _, v := range []any{k, *k, []any{k}} {
			out := strings.Trim(fmt.Sprintf(verb, v), "[]")
			if out != k.String() && !strings.HasPrefix(out, "interface {}{") {
				t.Errorf("%s prints %s", verb, out)
			}
			if strings.Contains(out, "171") || strings.Contains(out, "0xab") || strings.Contains(strings.ToLower(out), "abab") {
				t.Errorf("%s prints %s", verb, out)
			}
		}
		if out := fmt.Sprintf(verb, h); out != "hasher of epoch "+k.Epoch() {
			t.Errorf("%s prints %s of a hasher", verb, out)
		}
	}
}

// A line of the log that a crash cut short takes no later one with it.
func TestDestroyBehindACutLine(t *testing.T) {
	d, dir := initKeys(t)
	if err := os.WriteFile(filepath.Join(dir, "destroyed.jsonl"), []byte(`{"epoch":"b-2025`), 0o600); err != nil {
		t.Fatal(err)
	}
	epoch := load(t, d, "").Epoch()
	if _, err := d.Destroy(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Load(t.Context(), epoch); !errors.Is(err, anonymize.ErrDestroyed) {
		t.Errorf("loading it: %v", err)
	}
}

// A hint that a person pastes names the folder, whatever it is called.
func TestHintsQuoteForTheShell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $HOME")
	d, err := anonymize.InitKeyDir(dir, day0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "b-20260102T030405.000000Z.key")); err != nil {
		t.Fatal(err)
	}
	_, err = d.Load(t.Context(), "")
	if want := `it'\''s $HOME'` + "`"; !strings.HasSuffix(fault.Hint(err), want) {
		t.Errorf("the hint is %s", fault.Hint(err))
	}
}

// A name is looked up under the token that a hasher gave it, whatever its kind.
func TestPseudonymsAreThoseOfAHasher(t *testing.T) {
	d, _ := initKeys(t)
	h := newHasher(t, load(t, d, ""), anonymize.Options{})
	for _, kind := range []string{anonymize.KindTenant, anonymize.KindSession, anonymize.KindUser, "shelf"} {
		got, err := d.Pseudonyms(t.Context(), kind, []byte("quillmere"))
		if want := h.Token(kind, []byte("quillmere")); err != nil || len(got) != 1 || got[0].Token != want {
			t.Errorf("%s: %v, %v, want %s", kind, got, err, want)
		}
	}
}
