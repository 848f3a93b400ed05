package textcorpus

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

// The same seed gives the same documents; every kind has its own, of the sizes it promises, and only broken ones are
// ill-formed. A vocabulary without words still gives texts.
func TestDocuments(t *testing.T) {
	tokens := [][]byte{[]byte(" the"), []byte(" of"), []byte("的"), []byte("是不"), []byte("ます"), []byte(" мир"), []byte("\xff")}
	for name, vocabulary := range map[string][][]byte{"words": tokens, "no words": nil} {
		a, b, other := New(1, vocabulary), New(1, vocabulary), New(2, vocabulary)
		for _, kind := range append(Kinds(), Mix) {
			x, err := a.Document(nil, kind)
			if err != nil {
				t.Fatal(err)
			}
			y, _ := b.Document(nil, kind)
			z, _ := other.Document(nil, kind)
			if !bytes.Equal(x, y) || bytes.Equal(x, z) {
				t.Errorf("%s, %s: the seed does not decide", name, kind)
			}
			if kind != Broken && !utf8.Valid(x) {
				t.Errorf("%s, %s: ill-formed", name, kind)
			}
			if len(x) < 400 || len(x) > 20_000 && kind != Giants || kind == Giants && len(x) < 100_000 {
				t.Errorf("%s, %s: %d bytes", name, kind, len(x))
			}
		}
	}
	docs, err := New(1, tokens).Documents(Broken, 50_000)
	if err != nil || utf8.Valid(bytes.Join(docs, nil)) {
		t.Errorf("broken texts are well-formed (%v)", err)
	}
	if _, err := New(1, tokens).Document(nil, "klingon"); err == nil {
		t.Error("an unknown kind was drawn")
	}
}
