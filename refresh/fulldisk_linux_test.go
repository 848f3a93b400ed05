package refresh_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// envDisk is what the child of TestFullDisk does, as JSON.
const envDisk = "TAILGATE_TEST_DISK"

const noMount = "mounting is not allowed"

// fullDisk is a site on a file system of its own.
type fullDisk struct {
	Site   site
	Nights []night
	Result string // file for the tables
}

// A disk that is full in a night, for real: a file system with little room, then with more. Each night ends with one line or goes
// well, the tables of earlier days stay readable, and with room again all tables are those of an undisturbed run.
func TestFullDisk(t *testing.T) {
	if text := os.Getenv(envDisk); text != "" {
		onFullDisk(t, text)
		return
	}
	g := simulated()
	if g.perDay > 20_000 {
		g.perDay = 20_000 // the disk of the test is small
	}
	g.days, g.veryLate, g.empty = 2, false, nil
	log := newGatewayLog(t, g)
	want, _ := quiet(t, log)
	d := fullDisk{Site: *newSite(t, log), Nights: []night{log.nightOf(0), log.nightOf(1)}, Result: filepath.Join(t.TempDir(), "tables.json")}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), envDisk+"="+string(data))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL), strings.Contains(text, noMount):
		t.Skip("no name spaces or no mounting here: ", err)
	case err != nil:
		t.Fatalf("%v: %s", err, text)
	}
	data, err = os.ReadFile(d.Result)
	var got struct {
		Full   int
		Tables map[string]string
	}
	if err := errors.Join(err, json.Unmarshal(data, &got)); err != nil {
		t.Fatal(err)
	}
	sameTables(t, "with room again", want[1], got.Tables)
	figuresOfNights(t, log, "F6", "%d runs on a full disk: exit 1 each, one line; with room again every table equal to the undisturbed run's", got.Full)
}

// onFullDisk does the nights with 64 KiB of room, then with four times as much, and so on.
func onFullDisk(t *testing.T, text string) {
	var d fullDisk
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	root := d.Site.root()
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(noMount, ": ", err)
	}
	defer func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) }()
	ballast, full := filepath.Join(root, "ballast"), 0
	for _, n := range d.Nights {
		before := d.Site.tables(t)
		for room := int64(32 << 10); ; room *= 3 {
			if err := fill(ballast, room); err != nil {
				t.Fatal(err)
			}
			_, err := d.Site.run(t.Context(), n, nil)
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.ENOSPC) || room > size {
				t.Fatalf("with %d KiB: %v", room>>10, err)
			}
			full++
			for path, sum := range before {
				if now := d.Site.tables(t)[path]; now != sum && !strings.Contains(path, d.Nights[0].Day) {
					t.Errorf("with %d KiB: %s has changed", room>>10, path)
				}
			}
		}
	}
	if full == 0 {
		t.Error("the disk was never full")
	}
	data, err := json.Marshal(map[string]any{"Full": full, "Tables": d.Site.tables(t)})
	if err == nil {
		err = os.WriteFile(d.Result, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes a file that leaves so much room on its file system.
func fill(path string, room int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &st); err != nil {
		return err
	}
	n := int64(st.Bavail)*st.Bsize - room
	if n <= 0 {
		n = 0
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for ; n > 0 && err == nil; n -= int64(len(block)) {
		_, err = f.Write(block[:min(n, int64(len(block)))])
	}
	return errors.Join(err, f.Close())
}
