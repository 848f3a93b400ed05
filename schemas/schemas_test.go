package schemas_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"tailgate/schemas"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// The Parquet schema of each table is a contract with everyone who queries the files: a change here needs a
// new version and a reader for the old one.
func TestTableSchemasAreStable(t *testing.T) {
	for _, table := range schemas.Tables() {
		t.Run(table.Name, func(t *testing.T) {
			got := parquet.SchemaOf(table.Row).String() + "\n"
			path := filepath.Join("testdata", table.Name+".schema")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("schema changed (-want +got):\n%s", diff)
			}
		})
	}
}

var unsigned = regexp.MustCompile(`INT\(\d+,false\)`)

func TestColumnsFollowTheConventions(t *testing.T) {
	for _, table := range schemas.Tables() {
		schema := parquet.SchemaOf(table.Row).String()
		if unsigned.MatchString(schema) {
			t.Errorf("%s has an unsigned column:\n%s", table.Name, schema)
		}
		for _, line := range strings.Split(schema, "\n") {
			if strings.Contains(line, "repeated int") || strings.Contains(line, "repeated binary") {
				t.Errorf("%s has a list that is not three-level: %s", table.Name, line)
			}
			if strings.Contains(line, "TIMESTAMP") && !strings.Contains(line, "isAdjustedToUTC=true,unit=MICROS") {
				t.Errorf("%s has a wall time that is not UTC microseconds: %s", table.Name, line)
			}
		}
	}
}

func TestFooterHasEveryKey(t *testing.T) {
	m := schemas.Footer{Schema: schemas.TableTrace}.Map()
	for _, key := range []string{schemas.KeySchema, schemas.KeyVersion, schemas.KeyTool, schemas.KeyDefinition, schemas.KeySeed,
		schemas.KeyBlockSize, schemas.KeyTokenizer, schemas.KeyEpoch, schemas.KeyInputs} {
		if _, ok := m[key]; !ok {
			t.Errorf("footer lacks %s", key)
		}
	}
}

func TestManifestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	if _, err := schemas.ReadManifest(dir); !os.IsNotExist(err) {
		t.Errorf("unfinished folder: %v", err)
	}
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := schemas.DigestFile(dir, file)
	if err != nil || d.Bytes != 3 || d.SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Fatalf("digest %+v, %v", d, err)
	}
	want := &schemas.Manifest{Kind: "run", Seed: 7, Files: []schemas.FileDigest{d}, Settings: map[string]any{"scale": "1.5x"}}
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dir, schemas.ManifestName), []byte("{half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := schemas.ReadManifest(dir); err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("broken manifest: %v", err)
	}
}

func TestInputsDigestIgnoresOrder(t *testing.T) {
	a, b := schemas.FileDigest{SHA256: "aa"}, schemas.FileDigest{SHA256: "bb"}
	if schemas.InputsDigest([]schemas.FileDigest{a, b}) != schemas.InputsDigest([]schemas.FileDigest{b, a}) {
		t.Error("digest depends on the order of the inputs")
	}
	if schemas.InputsDigest(nil) != "" {
		t.Error("digest of nothing is not empty")
	}
}
