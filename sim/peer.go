package sim

import (
	"context"
	"net"
	"net/http"
)

// peer is the connection of a client below net/http. A handler that has flushed its header may leave it to Run to
// write whole chunks to it until it goes on writing itself: net/http has nothing buffered meanwhile.
type peer struct {
	conn net.Conn
	direct
}

type peerKey struct{}

// ConnContext is what http.Server.ConnContext has to be for tokens to be written without waking the handler of
// each. The handler works without it, at a higher cost.
func (s *Server) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, newPeer(c))
}

// peerOf returns the connection of a request; nil where none is known.
func peerOf(r *http.Request) *peer {
	p, _ := r.Context().Value(peerKey{}).(*peer)
	return p
}

// chunked returns the connection of r if the answer to it goes out in chunks of HTTP/1.1 that may be written
// directly, else nil.
func chunked(r *http.Request) *peer {
	p := peerOf(r)
	if p == nil || !p.can() || r.TLS != nil || r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		return nil
	}
	return p
}

// chunkHead is room for the size of a chunk and its line end.
const chunkHead = "0000000000\r\n"

// closeChunk ends the chunk in buf, whose data begins behind chunkHead, and also returns it with its size in front
// and without the room that the size leaves over.
func closeChunk(buf []byte) (whole, frame []byte) {
	const digits = "0123456789abcdef"
	n := len(buf) - len(chunkHead)
	at := len(chunkHead) - 2
	for {
		at--
		buf[at] = digits[n&15]
		if n >>= 4; n == 0 {
			buf = append(buf, "\r\n"...)
			return buf, buf[at:]
		}
	}
}
