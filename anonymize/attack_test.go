package anonymize_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tailgate/anonymize"
	"tailgate/internal/prefix"
	"tailgate/internal/rng"
)

// knownPrompts are texts that an attacker may know: templates with a slot of few values, common openings, and
// what is too short for a block.
func knownPrompts(n int) []string {
	r := rng.New(6, "known")
	openings := []string{"You are a helpful assistant.", "You are an expert harbour pilot. Answer briefly.", "Summarise the following text:", ""}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s Customer %05d asks about order %d.", openings[i%len(openings)], i, r.IntN(1<<20)) + strings.Repeat(" tide", r.IntN(40))
	}
	return out
}

// guesses are the block ids that somebody without the key may compute: the chain under keys that a careless
// program would have, plain hashes of the text, of its blocks and of its tokens, in either byte order.
func guesses(text string) []int64 {
	var out []int64
	take := func(sum []byte) {
		for _, v := range []uint64{binary.BigEndian.Uint64(sum), binary.LittleEndian.Uint64(sum)} {
			out = append(out, int64(v&^(1<<63)), int64(v>>1))
		}
	}
	tokens := tokensOf([]byte(text))
	for _, key := range [][]byte{nil, make([]byte, 32), []byte("tailgate"), []byte("tailgate/1/block"), []byte("secret"), []byte(strings.Repeat("\xff", 32))} {
		mac := func(parts ...[]byte) []byte {
			h := hmac.New(sha256.New, key)
			for _, p := range parts {
				h.Write(p)
			}
			return h.Sum(nil)
		}
		var scope []byte
		for _, field := range []string{"v1", "larch-32b", "", "", "", anonymize.Chars4, strconv.Itoa(16)} {
			scope = append(binary.LittleEndian.AppendUint32(scope, uint32(len(field))), field...)
		}
		chain := mac(scope)
		for at := 0; at < len(tokens); at += 16 {
			var block []byte
			for _, tok := range tokens[at:min(at+16, len(tokens))] {
				var b [4]byte
				copy(b[:], tok)
				block = append(block, b[:]...)
			}
			domain := byte(0)
			if at+16 > len(tokens) {
				domain = 1
			}
			take(mac([]byte(strings.Join(tokens[at:min(at+16, len(tokens))], ""))))
			chain = mac(chain, []byte{domain}, block)
			take(chain)
		}
	}
	for at := 64; ; at += 64 {
		prefix := []byte(text[:min(at, len(text))])
		sum, old := sha256.Sum256(prefix), sha1.Sum(prefix)
		take(sum[:])
		take(old[:])
		if at >= len(text) {
			return out
		}
	}
}

// TestDictionaryWithoutTheKey is the dictionary attack: 10,000 known prompts are hashed, and none of their ids is
// among what their texts give without the key. With the key all are: the attack would have found them.
func TestDictionaryWithoutTheKey(t *testing.T) {
	h := freshHasher(t, anonymize.Options{})
	known := knownPrompts(10_000)
	ids, names := map[int64]bool{}, map[string]bool{}
	for _, text := range known {
		for _, id := range blocks(t, h, completion(text)) {
			ids[id] = true
		}
		names[h.Token(anonymize.KindTenant, []byte(text))] = true
	}
	other := freshHasher(t, anonymize.Options{}) // a key of the attacker's own
	enc := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	found, foundNames, again := 0, 0, 0
	for _, text := range known {
		for _, id := range append(guesses(text), blocks(t, other, completion(text))...) {
			if ids[id] {
				found++
			}
		}
		for _, key := range []string{"", "tailgate", "tailgate/1/tenant", strings.Repeat("\x00", 32)} {
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write([]byte(text))
			plain := sha256.Sum256([]byte(text))
			for _, sum := range [][]byte{mac.Sum(nil), plain[:]} {
				if names["t_"+enc.EncodeToString(sum)[:13]] {
					foundNames++
				}
			}
		}
		for _, id := range blocks(t, h, completion(text)) {
			if ids[id] {
				again++
			}
		}
	}
	if found > 0 || foundNames > 0 {
		t.Errorf("%d ids and %d names were found without the key", found, foundNames)
	}
	if len(ids) < 20_000 || again < len(ids) {
		t.Errorf("the control found %d of %d ids", again, len(ids))
	}
}

// Two epochs, two models and, in tenant scope, two tenants share nothing whatever the text; one epoch gives equal
// ids for equal texts.
func TestNothingIsSharedAcrossScopes(t *testing.T) {
	r := rng.New(7, "scopes")
	a, b := freshHasher(t, anonymize.Options{TenantScope: true}), freshHasher(t, anonymize.Options{TenantScope: true})
	seen := map[int64]string{}
	for i := range 300 {
		text := strings.Repeat("tide", r.IntN(60)) + string(randomText(r, r.IntN(200)))
		for _, s := range []struct {
			h             *anonymize.Hasher
			model, tenant string
		}{{a, "m1", "t1"}, {a, "m1", "t2"}, {a, "m2", "t1"}, {b, "m1", "t1"}, {a, "m1t", "1"}, {a, "", "m1t1"}} {
			p := completion(text)
			p.Model, p.Tenant = s.model, s.tenant
			scope := fmt.Sprintf("%p %q %q", s.h, s.model, s.tenant)
			first := blocks(t, s.h, p)
			if n := prefix.Common(first, blocks(t, s.h, p)); n != len(first) {
				t.Fatalf("round %d: one text has two lists of ids", i)
			}
			for _, id := range first {
				if was, ok := seen[id]; ok && was != scope {
					t.Fatalf("round %d: %s and %s share an id", i, was, scope)
				}
				seen[id] = scope
			}
		}
	}
}
