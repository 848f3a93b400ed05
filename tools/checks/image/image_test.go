// Package image does what deploy/container/Containerfile says without a container engine, and looks at what comes of it.
package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const root = "../../.."

// instruction is one line of a Containerfile, continued lines joined.
type instruction struct{ word, rest string }

func read(t *testing.T) (stages [][]instruction) {
	t.Helper()
	data, err := os.ReadFile(root + "/deploy/container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", "")) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
		case "FROM":
			stages = append(stages, []instruction{{word, rest}})
		case "COPY", "RUN", "ARG", "ENV", "USER", "ENTRYPOINT", "WORKDIR":
			stages[len(stages)-1] = append(stages[len(stages)-1], instruction{word, rest})
		default:
			t.Fatalf("%q is no instruction", word)
		}
	}
	return stages
}

// build does what the first stage says and returns where its files lie.
func build(t *testing.T, stage []instruction) string {
	t.Helper()
	out := t.TempDir()
	for _, in := range stage {
		command, ok := strings.CutPrefix(in.rest, "CGO_ENABLED=0")
		switch {
		case in.word == "COPY":
			for _, from := range strings.Fields(in.rest)[:len(strings.Fields(in.rest))-1] {
				if _, err := os.Stat(filepath.Join(root, from)); err != nil {
					t.Errorf("%s is copied and not there", from)
				}
			}
		case in.word == "RUN" && ok:
			command = strings.NewReplacer("$TARGETOS", "linux", "$TARGETARCH", "amd64", "/out/", out+"/out/").Replace("CGO_ENABLED=0" + command)
			cmd := exec.Command("sh", "-ec", command)
			cmd.Dir = root
			if err := os.Mkdir(out+"/out", 0o755); err != nil {
				t.Fatal(err)
			}
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, said)
			}
		}
	}
	return out
}

// put is one COPY of the last stage.
func put(t *testing.T, w *tar.Writer, built, rest string) {
	t.Helper()
	owner := 0
	var paths []string
	for _, f := range strings.Fields(rest) {
		switch {
		case f == "--from=build":
		case f == "--chown=65532:65532":
			owner = 65532
		default:
			paths = append(paths, f)
		}
	}
	from, to := paths[:len(paths)-1], paths[len(paths)-1]
	for _, p := range from {
		source, target := built+p, to
		if !strings.HasPrefix(p, "/out/") {
			source = p // of the system that builds
		}
		if strings.HasSuffix(to, "/") {
			target = path.Join(to, path.Base(p))
		}
		info, err := os.Stat(source)
		if err != nil {
			t.Fatalf("COPY %s: %v", p, err)
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			t.Fatal(err)
		}
		h.Name, h.Uid, h.Gid, h.Uname, h.Gname = strings.TrimPrefix(target, "/"), owner, owner, "", ""
		var data []byte
		if info.IsDir() {
			h.Name += "/"
		} else if data, err = os.ReadFile(source); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.WriteHeader(h), func() error { _, err := w.Write(data); return err }()); err != nil {
			t.Fatal(err)
		}
	}
}

// assemble does what the last stage says.
func assemble(t *testing.T, stage []instruction, built string) v1.Image {
	t.Helper()
	if stage[0].rest != "scratch" {
		t.Errorf("the image is made from %s", stage[0].rest)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	config := v1.Config{}
	for _, in := range stage[1:] {
		switch in.word {
		case "COPY":
			put(t, w, built, in.rest)
		case "ENV":
			config.Env = append(config.Env, in.rest)
		case "USER":
			config.User = in.rest
		case "ENTRYPOINT":
			config.Entrypoint = []string{strings.Trim(in.rest, `[]"`)}
		default:
			t.Errorf("%s needs a shell, which is not there", in.word)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err == nil {
		image, err = mutate.Config(image, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestImage(t *testing.T) {
	stages := read(t)
	if len(stages) != 2 {
		t.Fatalf("%d stages", len(stages))
	}
	built := build(t, stages[0])
	for _, name := range []string{"tailgate", "replay"} {
		checkStatic(t, filepath.Join(built, "out", name))
	}
	image := assemble(t, stages[1], built)
	// Through a file, as it would be loaded elsewhere.
	file, tag := filepath.Join(t.TempDir(), "image.tar"), name.MustParseReference("tailgate:edge").(name.Tag)
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/tailgate"}) {
		t.Errorf("user %q, entry point %q", c.User, c.Entrypoint)
	}
	dir, names := unpack(t, image)
	want := []string{"etc/ssl/certs/ca-certificates.crt", "tmp", "usr/local/bin/replay", "usr/local/bin/tailgate"}
	if !slices.Equal(names, want) {
		t.Errorf("the image has %q, want %q", names, want)
	}
	if certs, err := os.ReadFile(dir + "/etc/ssl/certs/ca-certificates.crt"); err != nil || bytes.Count(certs, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("authorities: %v", err)
	}
	run(t, dir, c.Entrypoint[0], "version")
	run(t, dir, c.Entrypoint[0], "sample", "-o", "/tmp/logs", "--duration", "1m") // writes where it may
	run(t, dir, "/usr/local/bin/replay", "--help")
}

// checkStatic looks for a loader or a library that the binary would want.
func checkStatic(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static", path)
		}
	}
	if libs, err := f.ImportedLibraries(); len(libs) > 0 {
		t.Errorf("%s wants %v, %v", path, libs, err)
	}
}

// unpack writes the image's files below a folder and returns their names.
func unpack(t *testing.T, image v1.Image) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var data []byte
			data, err = io.ReadAll(r)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, h.FileInfo().Mode()))
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(to, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return dir, names
}

// run starts a command in the image as its user, with nothing of this system in reach; only root can.
func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("not root: the image is not run")
		return
	}
	cmd := &exec.Cmd{Path: command[0], Args: command, Env: []string{"PATH=/usr/local/bin"}, Dir: "/", SysProcAttr: &syscall.SysProcAttr{
		Chroot: dir, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}}
	for at := dir; at != "/"; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o011 == 0 {
			if err := os.Chmod(at, info.Mode().Perm()|0o011); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%q: %v\n%s", command, err, said)
	}
}
