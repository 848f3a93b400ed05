// Package anonymize turns a decoded prompt into keyed ids of its token blocks, and names into keyed tokens:
// prefix sharing stays measurable, the text and the names do not stay at all.
//
// It is not anonymisation in the legal sense: while an epoch's key exists its output is pseudonymised data.
// It reads no logs and writes nothing but key files.
//
// In: a prompt.Prompt, or the bytes of a name. Out: INT64 block ids and short tokens.
//
// Invariants. No key, no id: there is no default key and no unkeyed mode. The common prefix of two id lists is
// the common prefix of the two prompts' full blocks, under one key and one scope; under two keys or two scopes
// nothing is shared. What was not logged whole (a cut message, an image without its bytes) never gets an id
// that another prompt could share. Prompt text lives only in buffers that are cleared after use, but for the strings
// that a template from a file makes of it, which are left to the garbage collector; it never appears in an error.
//
// The scheme is that of vLLM's automatic prefix caching (a block's hash covers the hash of the block before
// it), keyed with HMAC-SHA256 (RFC 2104) under sub-keys derived by HKDF (RFC 5869).
package anonymize
