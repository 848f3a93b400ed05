package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md")

const referenceHeader = `# The command line

Made from the commands by ` + "`go test ./cmd/internal/cli -run Reference -update`" + `; a test holds it to them. ` + "`replay`" + ` alone is
` + "`tailgate replay`" + ` under its own name.

Every flag can be given as an environment variable, too: ` + "`--keep-builds`" + ` as ` + "`TAILGATE_KEEP_BUILDS`" + `. Flags win over the
environment, the environment over files. Results go to standard output, progress and errors to standard error. Times and sizes have
units: ` + "`800ms`, `30/s`, `1.5x`, `64MiB`" + `. A value of kind strings or ints is a list with commas between; a flag that is called
repeatable may be given several times. Days are UTC. What exit codes mean: [architecture.md](architecture.md#errors-and-exits).
` + "`tailgate completion bash`" + ` (zsh, fish, powershell) prints a completion file for a shell.

`

// TestReferenceIsCurrent holds docs/cli.md to the commands and their flags.
func TestReferenceIsCurrent(t *testing.T) {
	want := reference((&app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, getenv: func(string) (string, bool) { return "", false }}).root())
	path := filepath.Join("..", "..", "..", "docs", "cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("docs/cli.md is not current, run with -update: %s", diff)
	}
}

// TestEveryCommandIsDocumented asks of each command and flag what a reader needs.
func TestEveryCommandIsDocumented(t *testing.T) {
	root := (&app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).root()
	walk(root, func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q is no short description", c.CommandPath(), c.Short)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no description", c.CommandPath(), f.Name)
			}
		})
	})
}

func reference(root *cobra.Command) string {
	b := &strings.Builder{}
	b.WriteString(referenceHeader)
	fmt.Fprintf(b, "| command | what it does |\n|---|---|\n")
	walk(root, func(c *cobra.Command) {
		if c != root {
			fmt.Fprintf(b, "| [%s](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), cellText(c.Short))
		}
	})
	walk(root, func(c *cobra.Command) { writeCommand(b, c) })
	return b.String()
}

// walk visits the commands that people see, in order.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			walk(sub, visit)
		}
	}
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	if c.Runnable() && c.HasParent() {
		fmt.Fprintf(b, "    %s\n\n", c.UseLine())
	}
	writeAbout(b, about)
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n%s\n", indented(c.Example))
	}
	var rows []string
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		rows = append(rows, flagRow(f))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | value | default | |\n|---|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

// writeAbout writes a command's text as Markdown: lines that are indented there stay as they are.
func writeAbout(b *strings.Builder, text string) {
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if strings.HasPrefix(line, " ") {
			line = "    " + strings.TrimLeft(line, " ")
			b.WriteString(line)
			continue
		}
		b.WriteString(strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(line))
	}
}

func indented(text string) string {
	var out []string
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		out = append(out, "    "+strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

func flagRow(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	def := f.DefValue
	switch {
	case def == "" || def == "[]" || def == "false" && kind == "", strings.Contains(usage, "(default"):
		def = ""
	default:
		def = "`" + def + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |", name, cellText(kind), cellText(def), cellText(usage))
}

// cellText is a text that may stand in a table of Markdown. Its lines stay apart; those that are indented go on with the one
// before, and names that are aligned get a colon.
func cellText(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		text := strings.TrimSpace(line)
		if name, rest, aligned := strings.Cut(text, "  "); aligned {
			text = name + ": " + strings.TrimSpace(rest)
		}
		if last := len(lines) - 1; last >= 0 && strings.HasPrefix(line, " ") {
			lines[last] += " " + text
		} else {
			lines = append(lines, text)
		}
	}
	for i, line := range lines {
		lines[i] = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(line)
	}
	return strings.Join(lines, "<br>")
}
