package anonymize_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/fault"
)

// Half a year of nightly refreshes: a block key for each, a pseudonym key for 90 days, keys older than two days
// destroyed. Block ids are never shared by two nights, tenants keep their name within a pseudonym epoch, topics
// for good, and what is destroyed stays so.
func TestHalfAYearOfRefreshes(t *testing.T) {
	d, err := anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), day0)
	if err != nil {
		t.Fatal(err)
	}
	blockIDs := map[int64]int{}
	tenants, pseudonyms := map[string]int{}, map[string]string{}
	var topic string
	var live []string
	const nights = 183
	for night := range nights {
		at := day0.AddDate(0, 0, night).Add(time.Duration(night%7) * time.Minute)
		epoch := newEpoch(t, d, at)
		k := load(t, d, "auto")
		if k.Epoch() != epoch {
			t.Fatalf("night %d: the newest is %s, not %s", night, k.Epoch(), epoch)
		}
		h := newHasher(t, k, anonymize.Options{})
		for _, id := range blocks(t, h, completion("the same system prompt every night, word for word, and longer than a block of it")) {
			if before, ok := blockIDs[id]; ok {
				t.Fatalf("nights %d and %d share block %d", before, night, id)
			}
			blockIDs[id] = night
		}
		tenant := h.Token(anonymize.KindTenant, []byte("quillmere"))
		tenants[tenant]++
		life := pseudonymEpoch(t, d, k)
		if known, ok := pseudonyms[life]; ok && known != tenant {
			t.Fatalf("night %d renamed a tenant within %s", night, life)
		}
		pseudonyms[life] = tenant
		now := h.Token(anonymize.KindTopic, []byte("tides"))
		if topic != "" && now != topic {
			t.Fatalf("night %d renamed a topic", night)
		}
		topic = now
		if live = append(live, epoch); len(live) > 2 {
			if _, err := d.Destroy(t.Context(), live[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Load(t.Context(), live[0]); fault.Of(err) != fault.Key {
				t.Fatalf("night %d: a destroyed key was loaded: %v", night, err)
			}
			live = live[1:]
		}
	}
	if len(pseudonyms) != 3 || len(tenants) != 3 {
		t.Errorf("%d pseudonym epochs and %d names in %d nights, want 3", len(pseudonyms), len(tenants), nights)
	}
	for _, name := range tenants {
		if name > 91 {
			t.Errorf("a name was used for %d nights", name)
		}
	}
	if n := len(list(t, d)); n != 2+3+1 { // two block keys, three pseudonym keys, and the block key of init
		t.Errorf("%d keys are left", n)
	}
}

// Whatever the umask, a folder of keys is for its owner alone.
func TestKeysUnderAnyUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o002} {
		old := syscall.Umask(umask)
		dir := filepath.Join(t.TempDir(), "keys")
		d, err := anonymize.InitKeyDir(dir, day0)
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %03o: %v", umask, err)
		}
		if _, err := d.Destroy(t.Context(), "b-20260102T030405.000000Z"); err != nil {
			t.Fatal(err)
		}
		for pattern, want := range map[string]os.FileMode{".": 0o700, "*.key": 0o600, "destroyed.jsonl": 0o600} {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range paths {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("umask %03o: %s has mode %v, want %v", umask, path, info.Mode(), want)
				}
			}
			if len(paths) == 0 {
				t.Errorf("umask %03o: no %s", umask, pattern)
			}
		}
	}
}

// A named pipe in the place of a key neither blocks nor gives a key; nor does a link to a pipe or a device.
func TestSpecialFilesAreNoKeys(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link to device": func(path string) error { return os.Symlink("/dev/urandom", path) },
	} {
		t.Run(name, func(t *testing.T) {
			d, dir := initKeys(t)
			path := filepath.Join(dir, "b-20260102T030405.000000Z.key")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Skip(err)
			}
			if _, err := d.Load(t.Context(), "auto"); fault.Of(err) != fault.Key {
				t.Errorf("loaded: %v", err)
			}
			if _, err := d.Destroy(t.Context(), "b-20260102T030405.000000Z"); err == nil {
				t.Error("destroyed")
			}
		})
	}
}
