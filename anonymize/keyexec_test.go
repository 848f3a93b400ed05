package anonymize_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/fault"
)

// command writes a shell script that has the cases of a key command and returns it as a key source.
func command(t *testing.T, cases string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keycommand")
	script := "#!/bin/sh\ncase $1 in\nlist) echo b-20260102T030405.000000Z p-20260102T030405.000000Z topics ;;\n" + cases + "\nesac\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return "exec:" + path
}

func openSource(t *testing.T, source string, o anonymize.SourceOptions) *anonymize.Keyring {
	t.Helper()
	r, err := anonymize.OpenKeys(t.Context(), source, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// toy is the key command of deploy/keys over a new folder.
func toy(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "deploy", "keys", "toy"))
	if err != nil {
		t.Fatal(err)
	}
	return "exec:" + path + " " + filepath.Join(t.TempDir(), "toy")
}

// fakeServices are stand-ins for the programs that the scripts of deploy/keys call. They know as much of them as
// the scripts use.
var fakeServices = map[string]string{
	"aws": `#!/bin/sh
case "$1 $2" in
"kms generate-data-key-without-plaintext") { printf wrapped; head -c 32 /dev/urandom; } | base64 | tr -d '\n' ;;
"kms decrypt") tail -c 32 "${4#fileb://}" | base64 ;;
*) exit 9 ;;
esac
`,
	"vault": `#!/bin/sh
set -e
for last; do :; done
case "$1 $2 $3" in
"kv list "*) ls "$FAKE_VAULT/$last" | sed 's/^/- /' ;;
"kv metadata get") [ -e "$FAKE_VAULT/$last" ] ;;
"kv metadata delete") rm "$FAKE_VAULT/$last" ;;
"kv get "*) cat "$FAKE_VAULT/$last" ;;
"kv put "*)
  [ "$4" = -cas=0 ] && [ "$6" = key=- ] && mkdir -p "$FAKE_VAULT/${5%/*}"
  set -C
  cat >"$FAKE_VAULT/$5" ;;
"write -field=random_bytes -f") od -An -N32 -tx1 /dev/urandom | tr -d ' \n' ;;
*) exit 9 ;;
esac
`,
}

// shipped is a script of deploy/keys over stand-ins for its service.
func shipped(t *testing.T, name string, args ...string) string {
	t.Helper()
	bin := t.TempDir()
	for program, script := range fakeServices {
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("FAKE_VAULT", t.TempDir())
	path, err := filepath.Abs(filepath.Join("..", "deploy", "keys", name))
	if err != nil {
		t.Fatal(err)
	}
	return "exec:" + path + " " + strings.Join(args, " ")
}

// A key command is as good as a folder, from the first epoch to the last.
func TestKeysOfACommand(t *testing.T) {
	for name, source := range map[string]func(t *testing.T) string{
		"toy": toy,
		"kms": func(t *testing.T) string {
			return shipped(t, "kms", "alias/tailgate", filepath.Join(t.TempDir(), "wrapped"))
		},
		"vault": func(t *testing.T) string { return shipped(t, "vault", "tailgate/keys") },
	} {
		t.Run(name, func(t *testing.T) { liveThrough(t, source(t), name == "toy") })
	}
}

// liveThrough takes a source from its first epoch on; remembers tells whether it knows destroyed keys.
func liveThrough(t *testing.T, source string, remembers bool) {
	r, err := anonymize.InitKeys(t.Context(), source, anonymize.SourceOptions{}, day0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anonymize.InitKeys(t.Context(), source, anonymize.SourceOptions{}, day0); fault.Of(err) != fault.Key {
		t.Errorf("a second init: %v", err)
	}
	first := load(t, r, "auto")
	same := load(t, openSource(t, source, anonymize.SourceOptions{}), first.Epoch())
	next := load(t, r, newEpoch(t, r, day0.Add(time.Hour)))
	late := load(t, r, newEpoch(t, r, day0.Add(anonymize.PseudonymLife)))
	tokens := func(k *anonymize.Keys) [3]string {
		h := newHasher(t, k, anonymize.Options{})
		return [3]string{h.Token(anonymize.KindRecord, nil) + first.Epoch(), h.Token(anonymize.KindTenant, []byte("a")), h.Token(anonymize.KindTopic, []byte("a"))}
	}
	if tokens(first) != tokens(same) {
		t.Error("one epoch gives two names")
	}
	a, b, c := tokens(first), tokens(next), tokens(late)
	if a[1] != b[1] || a[1] == c[1] || a[2] != c[2] {
		t.Errorf("tenant %s %s %s, topic %s %s", a[1], b[1], c[1], a[2], c[2])
	}
	record, err := r.Destroy(t.Context(), first.Epoch())
	if err != nil || record.Result != "destroyed" || record.Epoch != first.Epoch() || record.At.IsZero() || record.Notice == "" {
		t.Errorf("destroying: %+v %v", record, err)
	}
	if _, err := r.Load(t.Context(), first.Epoch()); errors.Is(err, anonymize.ErrDestroyed) != remembers || fault.Of(err) != fault.Key {
		t.Errorf("loading it: %v", err)
	}
	if record, err := r.Destroy(t.Context(), first.Epoch()); record != nil || fault.Of(err) != fault.Key {
		t.Errorf("destroying it again: %+v %v", record, err)
	}
	if _, err := r.Load(t.Context(), "b-20270101T000000.000000Z"); fault.Of(err) != fault.Key || !strings.Contains(fault.Hint(err), "keys list") {
		t.Errorf("loading a key that never was: %v", err)
	}
}

// The three ways to print a key are one key.
func TestWaysToPrintAKey(t *testing.T) {
	key := bytes.Repeat([]byte{'K', 0x80, '\n', 0xff}, 8)
	dir := t.TempDir()
	var want string
	for name, printed := range map[string]string{
		"raw": string(key), "hex": hex.EncodeToString(key), "hex, upper case, line end": strings.ToUpper(hex.EncodeToString(key)) + "\r\n",
		"base64": base64.StdEncoding.EncodeToString(key), "base64, line end": base64.StdEncoding.EncodeToString(key) + "\n",
	} {
		file := filepath.Join(dir, "printed")
		if err := os.WriteFile(file, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHasher(t, load(t, openSource(t, command(t, "get) cat "+file+" ;;"), anonymize.SourceOptions{}), ""), anonymize.Options{})
		got := h.Token(anonymize.KindTenant, []byte("a"))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: another key", name)
		}
	}
}

func TestUnfitKeyCommandsAreRefused(t *testing.T) {
	for _, tc := range []struct{ name, get, says string }{
		{"short", "printf 0123456789", "printed 10 bytes that are no key"},
		{"long", "head -c 33 /dev/urandom", "printed 33 bytes that are no key"},
		{"no hex", "printf %064s x", "printed 64 bytes that are no key"},
		{"nothing", ":", "printed 0 bytes"},
		{"endless", "cat /dev/zero | head -c 100000", "more than 256 bytes"},
		{"all zero", "head -c 32 /dev/zero", "all zero"},
		{"all zero in hex", "printf %064d 0", "all zero"},
		{"fails", "echo no such vault >&2; exit 9", "exit status 9"},
		{"fails behind a key", "head -c 32 /dev/urandom; exit 1", "exit status 1"},
		{"is killed", "kill -9 $$", "signal: killed"},
		{"destroyed", "exit 5", "destroyed"},
		{"no such key", "exit 3", "no such key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := openSource(t, command(t, "get) "+tc.get+" ;;"), anonymize.SourceOptions{})
			k, err := r.Load(t.Context(), "auto")
			if k != nil || fault.Of(err) != fault.Key || !strings.Contains(err.Error(), tc.says) || fault.Hint(err) == "" {
				t.Errorf("error %v, hint %q", err, fault.Hint(err))
			}
		})
	}
	for _, source := range []string{"exec:", "exec: ", "file:", ""} {
		if _, err := anonymize.OpenKeys(t.Context(), source, anonymize.SourceOptions{}); fault.Of(err) != fault.Usage {
			t.Errorf("%q: %v", source, err)
		}
	}
	if _, err := anonymize.OpenKeys(t.Context(), "exec:/nonexistent/keys", anonymize.SourceOptions{}); fault.Of(err) != fault.Key {
		t.Errorf("no such command: %v", err)
	}
	open := command(t, "")
	if err := os.Chmod(strings.TrimPrefix(open, "exec:"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := anonymize.OpenKeys(t.Context(), open, anonymize.SourceOptions{}); fault.Of(err) != fault.Key || !strings.Contains(fault.Hint(err), "chmod") {
		t.Errorf("a command that everybody can change: %v", err)
	}
}

// A command that does not answer is ended, with what it started.
func TestKeyCommandTimesOut(t *testing.T) {
	r := openSource(t, command(t, "get) sleep 600 & wait ;;"), anonymize.SourceOptions{Timeout: 300 * time.Millisecond})
	if _, err := r.Load(t.Context(), ""); fault.Of(err) != fault.Key || !strings.Contains(err.Error(), "no answer within 300ms") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openSource(t, command(t, ""), anonymize.SourceOptions{}).Load(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := (anonymize.SourceOptions{Timeout: -1}).Validate(); fault.Of(err) != fault.Usage {
		t.Errorf("a negative timeout: %v", err)
	}
}

// What a command says is passed on, but a key is not, however it is written, and no key comes by its arguments
// or environment.
func TestKeyCommandSaysNoKey(t *testing.T) {
	raw := strings.Repeat("0123abcd", 4)
	in := hex.EncodeToString([]byte(raw))
	b64 := base64.StdEncoding.EncodeToString([]byte(raw))
	for name, get := range map[string]string{
		"good":     "printf " + in + "; echo got " + in + " " + raw + " " + b64 + " >&2",
		"bad exit": "printf " + raw + "; echo got " + raw + " >&2; exit 1",
		"no key":   "printf " + raw[:20] + "; echo got " + raw[:20] + " >&2",
		"too much": "printf " + in + "; echo got " + in + " >&2; head -c 8130 /dev/zero | tr '\\0' x >&2; echo " + in + " >&2",
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			r := openSource(t, command(t, "get) "+get+"; tr '\\0' ' ' </proc/$$/environ >&2 ;;"), anonymize.SourceOptions{Stderr: &said})
			_, err := r.Load(t.Context(), "")
			all := said.String()
			if err != nil {
				all += err.Error() + fault.Hint(err)
			}
			if !strings.Contains(all, "keycommand: got [key]") || strings.Contains(all, raw[:20]) || strings.Contains(all, in[:20]) || strings.Contains(all, b64[:20]) {
				t.Errorf("said %s", all)
			}
		})
	}
}

// The arguments of a command may be secrets of their own: no error has them.
func TestErrorsHideTheArgumentsOfACommand(t *testing.T) {
	empty := strings.ReplaceAll(command(t, "get) exit 3 ;;"), "exec:", "")
	script, err := os.ReadFile(empty)
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]string{"no key": "none", "no pseudonym key": "b-20260102T030405.000000Z", "no topics": "b-20260102T030405.000000Z p-20260102T030405.000000Z"} {
		cases := strings.Replace(string(script), "b-20260102T030405.000000Z p-20260102T030405.000000Z topics", keys, 1)
		cases = strings.Replace(cases, "get) exit 3", "get) [ $2 != topics ] || exit 3; printf %032d 7", 1)
		if err := os.WriteFile(empty, []byte(strings.Replace(cases, "case $1", "shift; case $1", 1)), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err = openSource(t, "exec:"+empty+" --token=hush", anonymize.SourceOptions{}).Load(t.Context(), "")
		if all := fmt.Sprint(err, fault.Hint(err)); err == nil || !strings.Contains(all, "keycommand") || strings.Contains(all, "hush") {
			t.Errorf("%s: %s", name, all)
		}
	}
}
