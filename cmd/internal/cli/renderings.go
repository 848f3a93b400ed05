package cli

import (
	"fmt"
	"io"
	"strings"

	"tailgate/internal/atomicfile"
)

// rendering is a further form of a result, with the flag that asks for it and where it goes: a file, - for stdout, or
// "" for nowhere.
type rendering struct {
	flag, path string
	write      func(io.Writer) error
}

// oneStdout refuses more than one form for stdout. It is asked before there is a result: the forms need no write.
func oneStdout(asJSON bool, forms ...rendering) error {
	var on []string
	if asJSON {
		on = append(on, "--json")
	}
	for _, form := range forms {
		if form.path == "-" {
			on = append(on, form.flag+" -")
		}
	}
	if len(on) > 1 {
		return fmt.Errorf("only one of %s can go to stdout", strings.Join(on, ", "))
	}
	return nil
}

// render writes the forms that go to files, and then prints: the form that goes to stdout, or without one text, or json
// where it is asked for.
func (a *app) render(asJSON bool, text, json func(io.Writer) error, forms ...rendering) error {
	plain := text
	if asJSON {
		plain = json
	}
	for _, form := range forms {
		if form.path == "-" {
			plain = form.write
		} else if err := writeRendered(form.path, form.write); err != nil {
			return err
		}
	}
	return plain(a.stdout)
}

// writeRendered writes a rendering to path, whole or not at all; "" writes nothing.
func writeRendered(path string, render func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	out, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := render(out); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.Commit()
}
