package replay_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"strconv"
	"strings"
	"testing"

	"tailgate/replay"
)

// Every kind that a result may have is explained to whoever reads the summary.
func TestEveryKindIsExplained(t *testing.T) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, other, _ := strings.Cut(replay.Explain(replay.KindOther, 1), ": ")
	kinds := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Kind") {
			return true
		}
		kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		kinds++
		if text := replay.Explain(kind, 1); kind != replay.KindOther && strings.HasSuffix(text, other) {
			t.Errorf("%s has no sentence", kind)
		}
		return true
	})
	if kinds < 30 {
		t.Errorf("found %d kinds", kinds)
	}
}
