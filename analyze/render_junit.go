package analyze

import (
	"encoding/xml"
	"fmt"
	"io"

	"tailgate/schemas"
)

type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
}

// WriteJUnit writes one test case per rule, as CI systems read them: a broken rule is a failure; an inconclusive
// rule or an invalid run is an error, so that neither shows as green. Without a gate there is one case, on validity.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "tailgate gate"}
	add := func(c junitCase) {
		suite.Tests++
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Error != nil {
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if r.Gate == nil {
		c := junitCase{Name: "validity", Class: "tailgate"}
		if len(r.Invalid) > 0 {
			c.Error = &junitMessage{schemas.VerdictInvalid, r.Invalid[0]}
		}
		add(c)
	} else {
		for _, v := range r.Gate.Rules {
			add(ruleCase(v))
		}
	}
	suites := junitSuites{Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Suite: suite}
	data, err := xml.MarshalIndent(suites, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	}
	if err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	return nil
}

func ruleCase(v RuleReport) junitCase {
	c := junitCase{Name: fmt.Sprintf("%s %s", v.Rule, v.Limit), Class: "tailgate." + v.By.String(), Output: v.Reason}
	switch v.Verdict {
	case schemas.VerdictFail:
		c.Failure = &junitMessage{v.Verdict, v.Reason}
	case schemas.VerdictInconclusive, schemas.VerdictInvalid:
		c.Error = &junitMessage{v.Verdict, v.Reason}
	}
	return c
}
