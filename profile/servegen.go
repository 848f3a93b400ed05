package profile

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// SourceServeGen marks a profile that was made from client files of ServeGen, not from requests.
const SourceServeGen = "servegen"

// Windows of the ServeGen client files.
const (
	serveGenRateS   = 600       // of a row of the rate file
	serveGenLengthS = 6 * 3_600 // of a length distribution
	serveGenMaxFile = 256 << 20 // bytes
	serveGenMaxS    = 10 * 366 * 86_400
	serveGenMaxRate = 1e6
)

// ServeGen is a folder of client files as github.com/alibaba/ServeGen publishes them: what clients do in windows of
// time, no requests.
type ServeGen struct {
	Clients []ServeGenClient // in order of their number
	Files   []schemas.FileDigest
}

// ServeGenClient is what one client does.
type ServeGenClient struct {
	Number  int
	Label   string            // client-<number>
	Windows []ServeGenWindow  // of 600 s, in order
	Lengths []ServeGenLengths // of 6 h, in order
}

// ServeGenWindow is the law of the gaps in 600 s. For both laws the file has parameters by the method of moments.
type ServeGenWindow struct {
	StartS       int64
	Rate         float64 // requests per second
	CV           float64 // of the gaps
	Law          string  // Gamma, Weibull, or "" where too few requests came
	Shape, Scale float64 // of the law, the scale in seconds; 0 without one
}

// ServeGenLengths are the distributions of lengths in 6 h; empty where no request came.
type ServeGenLengths struct {
	StartS        int64
	Input, Output []LengthProb // by rising tokens
}

// LengthProb is the probability of one length.
type LengthProb struct {
	Tokens int32
	Prob   float64
}

// MeanTokens is the mean of a distribution, null for an empty one.
func MeanTokens(pdf []LengthProb) *float64 {
	sum, total := 0.0, 0.0
	for _, p := range pdf {
		sum, total = sum+p.Prob*float64(p.Tokens), total+p.Prob
	}
	return val(sum / total)
}

var serveGenTrace = regexp.MustCompile(`^chunk-([0-9]{1,9})-trace\.csv$`)

// ReadServeGen reads every client of dir: chunk-<n>-trace.csv (no header; window start in s, requests per s, CV of the
// gaps, Gamma | Weibull | nothing, shape, scale) and chunk-<n>-dataset.json (by window start an object whose
// input_tokens and output_tokens are Python dicts {tokens: probability} in a string; further fields, such as
// reason_ratio, are left out). Broken content is fault.Data with file and line or window.
func ReadServeGen(dir string) (*ServeGen, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading ServeGen clients: %w", err)
	}
	var s ServeGen
	for _, e := range entries {
		m := serveGenTrace.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[1])
		c := ServeGenClient{Number: number, Label: "client-" + strconv.Itoa(number)}
		names := [2]string{e.Name(), "chunk-" + m[1] + "-dataset.json"}
		if err := errors.Join(readBounded(filepath.Join(dir, names[0]), func(r io.Reader) (err error) {
			c.Windows, err = parseServeGenTrace(r)
			return err
		}), readBounded(filepath.Join(dir, names[1]), func(r io.Reader) (err error) {
			c.Lengths, err = parseServeGenLengths(r)
			return err
		})); err != nil {
			return nil, err
		}
		for _, name := range names {
			d, err := schemas.DigestFile(dir, filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			s.Files = append(s.Files, d)
		}
		s.Clients = append(s.Clients, c)
	}
	if s.Clients == nil {
		return nil, fault.Mark(fmt.Errorf("reading ServeGen clients: %s has no chunk-<number>-trace.csv", dir), fault.Failure, "give the folder of one model, such as data/reason/deepseek-r1")
	}
	slices.SortFunc(s.Clients, func(a, b ServeGenClient) int { return a.Number - b.Number })
	for i := 1; i < len(s.Clients); i++ {
		if s.Clients[i].Number == s.Clients[i-1].Number {
			return nil, fault.Mark(fmt.Errorf("reading ServeGen clients: %s has client %d twice", dir, s.Clients[i].Number), fault.Data, "")
		}
	}
	return &s, nil
}

func readBounded(path string, parse func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading ServeGen clients: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > serveGenMaxFile {
		return fault.Mark(fmt.Errorf("reading %s: more than %d bytes", path, serveGenMaxFile), fault.Data, "")
	}
	if err := parse(io.LimitReader(f, serveGenMaxFile)); err != nil {
		return fault.Mark(fmt.Errorf("reading %s: %w", path, err), fault.Data, "")
	}
	return nil
}

func parseServeGenTrace(r io.Reader) ([]ServeGenWindow, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.ReuseRecord = 6, true
	var out []ServeGenWindow
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		w, err := parseServeGenWindow(fields)
		if err == nil && len(out) > 0 && w.StartS <= out[len(out)-1].StartS {
			err = errors.New("windows are not in order")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		out = append(out, w)
	}
}

func parseServeGenWindow(fields []string) (w ServeGenWindow, err error) {
	var x [6]float64
	for i, f := range fields {
		if i == 3 {
			continue
		}
		if x[i], err = strconv.ParseFloat(f, 64); err != nil || !finite(x[i]) || x[i] < 0 {
			return w, fmt.Errorf("field %d is not a number of at least 0", i+1)
		}
	}
	w = ServeGenWindow{StartS: int64(min(x[0], serveGenMaxS+1)), Rate: x[1], CV: x[2], Law: fields[3], Shape: x[4], Scale: x[5]}
	switch {
	case x[0] != math.Trunc(x[0]) || w.StartS > serveGenMaxS || w.StartS%serveGenRateS != 0:
		return w, fmt.Errorf("the window does not begin on a multiple of %d s within ten years", serveGenRateS)
	case w.Rate > serveGenMaxRate:
		return w, fmt.Errorf("the rate is above %g requests/s", serveGenMaxRate)
	case w.Law != "" && w.Law != "Gamma" && w.Law != "Weibull":
		return w, errors.New("the law is neither Gamma nor Weibull nor empty")
	case w.Law != "" && (w.Shape == 0 || w.Scale == 0):
		return w, errors.New("the law has no shape or no scale")
	}
	return w, nil
}

func parseServeGenLengths(r io.Reader) ([]ServeGenLengths, error) {
	var windows map[string]struct {
		Input  string `json:"input_tokens"`
		Output string `json:"output_tokens"`
	}
	d := json.NewDecoder(r)
	if err := d.Decode(&windows); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the object")
	}
	var out []ServeGenLengths
	for start, w := range windows {
		at, err := strconv.ParseInt(start, 10, 64)
		if err != nil || at < 0 || at > serveGenMaxS || at%serveGenLengthS != 0 {
			return nil, fmt.Errorf("a window does not begin on a multiple of %d s within ten years", serveGenLengthS)
		}
		l := ServeGenLengths{StartS: at}
		if l.Input, err = parseDist(w.Input); err != nil {
			return nil, fmt.Errorf("window %d: input_tokens: %w", at, err)
		}
		if l.Output, err = parseDist(w.Output); err != nil {
			return nil, fmt.Errorf("window %d: output_tokens: %w", at, err)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b ServeGenLengths) int { return cmp.Compare(a.StartS, b.StartS) })
	for i := 1; i < len(out); i++ {
		if out[i].StartS == out[i-1].StartS { // "0" and "00"
			return nil, fmt.Errorf("window %d is there twice", out[i].StartS)
		}
	}
	return out, nil
}
