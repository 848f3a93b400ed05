package jinja

// Error is a fault of a template, or of a template against its variables. What never holds the text of a value.
type Error struct {
	Line int // 1-based line of the template, 0 where it is not known
	What string
}

type node any

// Statements. Hidden are the names that are undefined at the start of a frame (see symbols).
type (
	dataNode   struct{ text string }
	outputNode struct {
		expr expr
		line int
	}
	ifNode struct {
		tests  []expr // the first that holds decides
		bodies [][]node
		orElse []node
		line   int
	}
	forNode struct {
		targets []string
		tuple   bool // targets unpack, even if there is one
		iter    expr
		filter  expr // or nil
		body    []node
		orElse  []node
		line    int

		hidden, hiddenElse []string
	}
	setNode struct {
		targets []string // names; with attr, the namespace
		tuple   bool
		attr    string
		value   expr
		body    []node // of a block set, if value is nil
		line    int
		hidden  []string
	}
	withNode struct {
		names  []string
		values []expr
		body   []node
		line   int
		hidden []string
	}
	macroNode struct {
		name     string
		params   []string
		defaults []expr // of the last parameters
		body     []node
		line     int
		hidden   []string
	}
	scopeNode struct { // the generation tag
		body   []node
		hidden []string
	}
	breakNode    struct{}
	continueNode struct{}
)

type expr any

// Expressions.
type (
	constExpr struct{ value Value }
	nameExpr  struct {
		name string
		line int
	}
	attrExpr struct {
		of   expr
		name string
		line int
	}
	itemExpr struct {
		of, key expr
		line    int
	}
	sliceExpr struct {
		of              expr
		low, high, step expr // nil = none
		line            int
	}
	callExpr struct {
		of   expr
		args args
		line int
	}
	filterExpr struct {
		of     expr
		name   string
		filter filter
		args   args
		line   int
	}
	testExpr struct {
		of   expr
		name string
		test test
		args args
		not  bool
		line int
	}
	unaryExpr struct {
		op   string // not, -, +
		of   expr
		line int
	}
	binaryExpr struct {
		op          string
		left, right expr
		line        int
	}
	concatExpr struct {
		parts []expr
		line  int
	}
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
		line  int
	}
	condExpr struct {
		test, then, orElse expr // orElse may be nil
		line               int
	}
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct {
		keys, values []expr
		line         int
	}
)

type args struct {
	positional []expr
	names      []string
	named      []expr
}
