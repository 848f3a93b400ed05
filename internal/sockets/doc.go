// Package sockets has the system calls of a loop that reads many TCP connections on one thread: non-blocking sockets, the
// kernel's receive stamps, and a poller with a bell and a clock. It is for Linux; calls that cannot block are not announced to
// Go's scheduler. It knows no protocol.
package sockets
