// Package jinja renders the part of the Jinja2 language that chat templates are written in, to the byte as
// Python's jinja2 3.1 renders it with the settings of Hugging Face transformers: an immutable sandbox,
// trim_blocks and lstrip_blocks on, autoescape off, loop controls, the generation tag, and tojson as
// json.dumps(ensure_ascii=False).
//
// In: the source of a template, and variables as values (see Value). Out: text, and which of its bytes came
// from values that the caller had marked as content.
//
// Invariants. A construct, filter, test or method that is not honoured is refused by name, when parsing where
// it can be seen there, else when it is met: nothing is ever rendered otherwise than Python would in silence.
// A template reaches no file, no network, no clock and no randomness; steps, depth, output and copied bytes
// are bounded. Errors hold line numbers and words of the template's own source, never the text of a value.
// A Template is immutable and safe for concurrent use.
//
// Not honoured: inheritance, includes, imports, call and filter blocks, recursive loops, arguments unpacked
// with * or **, % formatting, str.format.
package jinja
