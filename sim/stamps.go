package sim

import (
	"bufio"
	"net"
	"time"
)

// stamps reads a connection and remembers when the bytes of a request came in.
type stamps struct {
	source       // what reads, with the kernel's stamp where there is one
	conn   int64 // number of the connection
	first  int64 // Unix ns of the first read since the last take; 0 = none
	kernel bool  // first is the kernel's
	c      net.Conn
}

func newStamps(c net.Conn, number int64) *stamps {
	return &stamps{source: newSource(c), conn: number, c: c}
}

// Read implements io.Reader.
func (st *stamps) Read(p []byte) (n int, err error) {
	at := int64(0)
	if st.can() {
		n, at, err = st.read(p)
	} else {
		n, err = st.c.Read(p)
	}
	if n > 0 && st.first == 0 {
		st.first, st.kernel = at, at != 0
		if at == 0 {
			st.first = time.Now().UnixNano()
		}
	}
	return n, err
}

// take returns the stamp of the request that was read last.
func (st *stamps) take() (at int64, kernel bool) {
	at, st.first = st.first, 0
	return at, st.kernel
}

// forget lets the next read be the first of a request, if none of it is in br already.
func (st *stamps) forget(br *bufio.Reader) {
	if st != nil && br.Buffered() == 0 {
		st.first = 0
	}
}
