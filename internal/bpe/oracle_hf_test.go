package bpe

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"tailgate/internal/textcorpus"
)

// oracleBytes is how much text the oracles compare: 100 MB of each vocabulary under TAILGATE_PROVE=full, else
// TAILGATE_ORACLE_BYTES; without either the test skips.
func oracleBytes(t *testing.T) int {
	t.Helper()
	if os.Getenv("TAILGATE_PROVE") == "full" {
		return 100_000_000
	}
	n, err := strconv.Atoi(os.Getenv("TAILGATE_ORACLE_BYTES"))
	if err != nil {
		t.Skip("compares with Python for TAILGATE_PROVE=full, or as many bytes as TAILGATE_ORACLE_BYTES says")
	}
	return n
}

// TestHFOracle compares the ids of drawn texts, and of sources that are on this machine, with those of Hugging
// Face's library for the vocabularies of three model families. No document may differ.
func TestHFOracle(t *testing.T) {
	size := oracleBytes(t)
	python, err := peerPython()
	if err != nil {
		t.Skip(err)
	}
	tokens := t.TempDir() + "/tokens"
	if out, err := exec.Command("go", "build", "-o", tokens, "../../tools/tokens").CombinedOutput(); err != nil {
		t.Fatalf("building tools/tokens: %v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	sources := strings.TrimSpace(string(root)) + "/src"
	kinds := strings.Join(append(textcorpus.Kinds(), textcorpus.Marks, textcorpus.Mix), ",")
	share := func(part float64) string { return strconv.Itoa(int(float64(size) * part)) }
	for _, model := range hfModels {
		for name, c := range map[string]struct {
			oracle string
			args   []string
		}{
			"text":     {"hf:", []string{"-bytes", share(0.5), "-kinds", kinds, "-sources", sources}},
			"specials": {"hf+special:", []string{"-bytes", share(0.05), "-kinds", kinds, "-special", "-seed", "2"}},
		} {
			t.Run(model+"/"+name, func(t *testing.T) {
				_, path := readModel(t, model)
				compare(t, exec.Command(tokens, append(c.args, "-encoding", path)...), exec.Command(python, "../../tools/checks/tokenizer_oracle.py", c.oracle+path))
			})
		}
	}
}

// compare pipes documents and ids into the oracle, and logs its last row.
func compare(t *testing.T, ours, oracle *exec.Cmd) {
	t.Helper()
	var said, failed bytes.Buffer
	pipe, err := ours.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	oracle.Stdin, oracle.Stdout, oracle.Stderr, ours.Stderr = pipe, &said, &failed, &failed
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	oracleErr := oracle.Run()
	pipe.Close()
	if err := ours.Wait(); err != nil && oracleErr == nil {
		t.Errorf("drawing documents: %v\n%s", err, failed.String())
	}
	rows := strings.Split(strings.TrimSpace(said.String()), "\n")
	if oracleErr != nil {
		t.Errorf("%v\n%s\n%s", oracleErr, strings.Join(rows, "\n"), failed.String())
		return
	}
	t.Log(rows[len(rows)-1])
}

// The vocabularies of real models: each of their special tokens is one id both ways, and every token decodes.
func TestHFModels(t *testing.T) {
	oracleBytes(t)
	for _, name := range hfModels {
		t.Run(name, func(t *testing.T) {
			data, _ := readModel(t, name)
			e, err := ParseHF(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			enc := e.NewEncoder()
			for _, s := range e.Specials() {
				id, _ := e.Special(s)
				if got := fmt.Sprint(enc.AppendSpecial(nil, []byte(s))); got != fmt.Sprint([]uint32{id}) {
					t.Errorf("special token %d is read as %s", id, got)
				}
			}
			if e.greedy == nil {
				t.Error("merged by rank")
			} else if wild := e.greedy.wilds; (wild > 0) != (name == "llama3") {
				t.Errorf("%d tokens are not made of lower ids (T1: Llama 3 alone has some)", wild)
			} else {
				t.Logf("%d tokens are not made of lower ids", wild)
			}
			if e.Size() < 128_000 {
				t.Errorf("only %d ids", e.Size())
			}
		})
	}
}
