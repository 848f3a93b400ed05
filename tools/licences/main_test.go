package main

import (
	"bytes"
	"strings"
	"testing"
)

// Every module of the binaries has a licence that is known, under which it may be passed on with them.
func TestEveryModuleMayBePassedOn(t *testing.T) {
	modules, err := linked([]string{"tailgate/cmd/..."})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := write(&b, modules, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"github.com/spf13/cobra v", "github.com/apache/arrow-go/v18 v", "Apache-2.0 (LICENSE.txt", "Permission is hereby granted"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	for _, m := range modules {
		if strings.Contains(m.licence, "GPL") || strings.HasPrefix(m.Path, "tailgate") {
			t.Errorf("%s: %s", m.Path, m.licence)
		}
	}
}

func TestLicencesAreToldByTheirWords(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n  Version 2.0, January 2004":                                                          "Apache-2.0",
		"Permission is hereby granted,\nfree of charge, to any person":                                         "MIT",
		"Redistribution and use in source and binary forms, with … Neither the name of":                        "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without":                                   "BSD-2-Clause",
		"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee": "ISC",
		"All rights reserved.": "",
	} {
		if got := kindOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
