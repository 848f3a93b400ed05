package schemas

import "time"

// Kinds of what can be forgotten.
const (
	ForgetTenant  = "tenant"
	ForgetSession = "session"
)

// KindForget is the kind of token that names a tombstone: made under a key that lives as long as the lake, so that a
// log that is read again years later still meets it.
const KindForget = "forget" // f_

// Tombstone says that a tenant or a session was forgotten, without its name. It lies in the lake, so that whoever reads
// the log again drops the rows again.
type Tombstone struct {
	Kind string `json:"kind"` // ForgetTenant or ForgetSession
	// Token is the token of [KindForget] of [ForgetValue].
	Token string `json:"token"`
	// Pseudonyms are the tokens that rows had under the pseudonym keys that lived.
	Pseudonyms []string  `json:"pseudonyms"`
	At         time.Time `json:"at"` // of the first request to forget, UTC
	// Open is what is still to be done; nil when nothing is.
	Open *ForgetWork `json:"open,omitempty"`
}

// ForgetWork is what was found before anything was changed, so that a run that was killed is finished by the next. It
// is dropped from the tombstone at the end.
type ForgetWork struct {
	Days     []string `json:"days"`               // that had rows, UTC
	Sessions []string `json:"sessions,omitempty"` // of a tenant: where its name was suppressed, these are left
	// Loners are rows of a tenant without a session: where its name was suppressed, nothing names them.
	Loners int64 `json:"loners,omitempty"`
}

// ForgetValue is what a tombstone's token is made of: the kind, a zero byte and the name as the gateway logs it.
func ForgetValue(kind string, name []byte) []byte {
	return append(append([]byte(kind), 0), name...)
}
