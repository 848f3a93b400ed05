// Package audit looks for text where there must be none: in the bytes of everything that the stages wrote, with
// Parquet pages decompressed and decoded.
//
// In: a folder, a file or a bucket, and optionally canaries: texts that were planted in the input. Out: a report
// of what was found where. Canaries are named by their number and values not at all, so a report can be passed
// on. Two things are looked for: canaries, in many spellings, in every byte; and string values that the schema's
// allow-list does not know.
//
// Invariants. Every byte of every file is looked at, or the file is reported as unreadable: nothing is passed
// over in silence. Memory does not grow with the size of a file. It writes nothing.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// Options say what an audit looks for. Without canaries only the allow-list is checked.
type Options struct {
	Canaries [][]byte // texts that must not be found; at least MinCanary bytes each
	Labels   []string // what the operator listed: models, classes and other labels that may stand as they are
	Skip     string   // a file that is passed over, because it holds the canaries; "" = none
	OnFile   func(done, total int)
}

// MinCanary is the least length of a canary in bytes: shorter ones would be found by chance.
const MinCanary = 8

// Validate reports every fault of o, without a canary in it.
func (o Options) Validate() error {
	var errs []error
	for i, c := range o.Canaries {
		if len(c) < MinCanary {
			errs = append(errs, fmt.Errorf("canary %d has %d bytes, at least %d are needed", i+1, len(c), MinCanary))
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// What a finding is.
const (
	WhatCanary = "canary" // a planted text
	WhatValue  = "value"  // a string that the allow-list does not know
	WhatSchema = "schema" // a Parquet file or column that is none of tailgate's
	WhatHidden = "hidden" // bytes of a Parquet file that its footer does not account for
	WhatLink   = "link"   // a symbolic link or special file: nobody knows what it leads to
)

// Finding is something that should not be there. Equal ones are counted.
type Finding struct {
	File    string `json:"file"`
	What    string `json:"what"`             // What… constant
	Place   string `json:"place"`            // Place… constant
	Column  string `json:"column,omitempty"` // of a Parquet file
	Canary  int    `json:"canary,omitempty"` // number of the canary, from 1
	Variant string `json:"variant,omitempty"`
	Count   int64  `json:"count"`
}

// Unreadable is a file that could not be looked at, or not all of it.
type Unreadable struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// maxFindings bounds the findings that a report lists; Found counts all.
const maxFindings = 1000

// Report is what an audit saw.
type Report struct {
	Files      int            `json:"files"`
	Bytes      int64          `json:"bytes"`
	Pages      int64          `json:"pages"`  // Parquet pages that were decompressed
	Values     int64          `json:"values"` // string values and dictionary entries that were held to the allow-list
	Canaries   int            `json:"canaries"`
	Spellings  int            `json:"spellings"` // of all canaries together
	Tables     map[string]int `json:"tables"`    // Parquet files by table
	Found      int64          `json:"found"`
	Findings   []Finding      `json:"findings"` // at most 1,000
	Unreadable []Unreadable   `json:"unreadable"`
}

// Err is nil when nothing was found and everything was read; a finding is a key fault, an unreadable file a data
// fault.
func (r *Report) Err() error {
	switch {
	case r.Found > 0:
		return fault.Mark(fmt.Errorf("the audit found %d things that should not be there", r.Found), fault.Key,
			"keep these files from everybody, and find which stage wrote them")
	case len(r.Unreadable) > 0:
		return fault.Mark(fmt.Errorf("the audit could not read %d files", len(r.Unreadable)), fault.Data, "")
	case r.Files == 0:
		return fault.Mark(errors.New("the audit found no file to look at"), fault.Usage, "name the folder that the stages wrote to")
	}
	return nil
}

// Path audits a file, or all files below a folder, hidden ones included. The error is about the path itself;
// what was found is in the report.
func Path(ctx context.Context, path string, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	files, folders, odd, err := filesBelow(path, o.Skip)
	if err != nil {
		return nil, fmt.Errorf("auditing %s: %w", path, err)
	}
	a := newAuditor(o)
	for i, f := range folders {
		a.call("folder", i+1, f)
	}
	for i, f := range odd {
		a.call("link", i+1, f)
		a.found(Finding{What: WhatLink, Place: PlaceName})
	}
	return a.all(ctx, files)
}

// Bucket audits all objects below the prefix of s.
func Bucket(ctx context.Context, s *objstore.S3, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	objects, err := s.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("auditing a bucket: %w", err)
	}
	var files []file
	for _, obj := range objects {
		files = append(files, file{name: obj.Key, open: func(ctx context.Context) (*objstore.Reader, error) { return s.Open(ctx, obj.Key) }})
	}
	return newAuditor(o).all(ctx, files)
}

// auditor holds the state of one audit.
type auditor struct {
	o      Options
	match  *matcher // nil = no canaries
	listed func(string) bool
	report Report
	counts map[Finding]int64 // by finding without its count
	name   string            // of the file at hand, as it may be told
}

func newAuditor(o Options) *auditor {
	a := &auditor{o: o, counts: map[Finding]int64{}}
	labels := map[string]bool{}
	for _, l := range o.Labels {
		labels[l] = true
	}
	a.listed = func(s string) bool { return labels[s] }
	if len(o.Canaries) > 0 {
		a.match = newMatcher(o.Canaries)
		a.report.Spellings = len(a.match.patterns)
	}
	a.report.Canaries, a.report.Tables = len(o.Canaries), map[string]int{}
	return a
}

// all audits files one by one.
func (a *auditor) all(ctx context.Context, files []file) (*Report, error) {
	for i, f := range files {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("auditing: %w", context.Cause(ctx))
		}
		a.one(ctx, i+1, f)
		if a.o.OnFile != nil {
			a.o.OnFile(i+1, len(files))
		}
	}
	r := &a.report
	r.Findings, r.Unreadable = make([]Finding, 0, len(a.counts)), append([]Unreadable{}, r.Unreadable...)
	for f, n := range a.counts {
		f.Count = n
		r.Findings = append(r.Findings, f)
	}
	slices.SortFunc(r.Findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.What, y.What), cmp.Compare(x.Place, y.Place),
			cmp.Compare(x.Column, y.Column), cmp.Compare(x.Canary, y.Canary), cmp.Compare(x.Variant, y.Variant))
	})
	r.Findings = r.Findings[:min(len(r.Findings), maxFindings)]
	return r, nil
}

// call makes name that of the findings to come, and looks at it: the i-th of its kind that holds a canary is told by its
// number alone.
func (a *auditor) call(kind string, i int, name string) {
	a.name = fmt.Sprintf("%s %d, whose name is held back", kind, i)
	if !a.text(PlaceName, "", []byte(name)) {
		a.name = name
	}
}

// one audits the i-th file.
func (a *auditor) one(ctx context.Context, i int, f file) {
	a.call("file", i, f.name)
	r, err := f.open(ctx)
	if err != nil {
		a.unreadable("cannot be opened")
		return
	}
	defer r.Close()
	a.report.Files++
	a.report.Bytes += r.Size()
	a.content(ctx, r)
}

// found notes a finding about the file at hand.
func (a *auditor) found(f Finding) {
	f.File = a.name
	a.report.Found++
	if len(a.counts) < 10*maxFindings || a.counts[f] > 0 {
		a.counts[f]++
	}
}

// unreadable notes why the file at hand could not be read. The reason is one of ours: a library's may quote.
func (a *auditor) unreadable(reason string) {
	u := Unreadable{File: a.name, Reason: reason}
	if !slices.Contains(a.report.Unreadable, u) {
		a.report.Unreadable = append(a.report.Unreadable, u)
	}
}

// file is something to look at.
type file struct {
	name string
	open func(context.Context) (*objstore.Reader, error)
}

func openFile(path string) (*objstore.Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return objstore.NewReader(f, info.Size(), f.Close), nil
}
