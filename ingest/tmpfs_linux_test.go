package ingest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// T6: a file system of 8 MiB that is full for real. The child mounts it in a name space of its own, fills it with a
// ballast but for little, ingests until there is no space left, removes the ballast and ingests again.
func TestFullFileSystem(t *testing.T) {
	const env = "TAILGATE_TEST_TMPFS"
	if dir := os.Getenv(env); dir != "" {
		fillFileSystem(t, dir)
		return
	}
	cmd := child(t, env+"="+t.TempDir())
	cmd.Args = append(cmd.Args, "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL), strings.Contains(text, noMount):
		t.Skip("no name spaces or no mounting here; TestFileSizeLimit and TestDiskFaultsLoseNothing stand in: ", err)
	case err != nil:
		t.Fatalf("%v: %s", err, text)
	default:
		_, line, _ := strings.Cut(text, "figures T6: ")
		line, _, _ = strings.Cut(line, "\n")
		figures(t, "T6", nil, "%s", line)
	}
}

const noMount = "mounting is not allowed"

func fillFileSystem(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(noMount, ": ", err)
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	ballast := filepath.Join(dir, "ballast")
	write(t, ballast, make([]byte, 8<<20-96<<10))
	o := options(filepath.Join(dir, "lake"))
	o.RotateRows, o.MaxBad, o.MinFree = 10, 1, -1
	src := newMemory(hundred(t))
	r, err := ingest.Run(t.Context(), src, o)
	if !errors.Is(err, syscall.ENOSPC) || fault.Of(err) != fault.Failure || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v", err)
	}
	checkWholeFiles(t, o.Lake)
	before := len(segmentRows(t, o.Lake))
	if before == 0 || before == 100 || r.Total.Rows != int64(before) {
		t.Errorf("%d rows on the full disk, %d in the report", before, r.Total.Rows)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), 100)
	figures(t, "T6", nil, "tmpfs of 8 MiB full: exit 1 after %d rows, nothing half-written; with space again 100 of 100 ids, 0 duplicates", before)
}
