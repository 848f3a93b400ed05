// Package epoll exchanges HTTP/1.1 requests and answers over plain TCP: one loop that reads, epoll, non-blocking
// sockets, one read buffer for all of them, and some hundred bytes of state for each stream. It is for load tests, where
// net/http's two goroutines and buffers for each connection cost more than everything else. It knows nothing of what
// requests and answers mean. TLS, HTTP/2, proxies and redirects are not its business.
//
// A request goes out on the caller's own thread, so that nobody is waited for; answers are read by the loop. That is the
// client's own goroutine, or who drives it (Client.Drive): a dispatcher whose wait for the next send is a turn of the loop.
//
//	dispatcher:  send ──► Driver.Wait(next send) ──► send …
//	                        │ rest: data gathers, at most gather     ▲ the clock (timerfd), the bell (eventfd)
//	                        │ wait: epoll                            │ end both
//	                        └ turn: read, hand on, end, expire ──────┘
//
//	      ┌────────── closed before a byte was written: once more ──────────┐
//	      ▼                                                                  │
//	Do ──►┬──► idle connection ─────────────────────────────────► write ─────┴──► head ──► body ──► end
//	      │         ▲                                               ▲            ▲ │ 1xx              │
//	      │         │                                               │            └─┘                  │
//	      │         └──────────────── kept, for IdleTimeout ────────┼─────────────────────────────────┘
//	      └──► resolve ──► connect ──► connected ───────────────────┘
//	                        ▲   │ refused, or no answer in 30 s
//	                        └───┘ next address
//
// From everywhere a fault, the time limit, a cancelled context or Close leads to the handler's End, once, and to a closed
// connection; so does an answer that the connection cannot outlive.
//
// What is HTTP and what is not is net/http's own word: package http1 frames the answers. Connections are kept, retried
// and given up as net/http does.
//
// Stamps are the kernel's: when the last byte of a read arrived, however long it then waited for the loop. So the loop may let
// data gather for a moment (gather) and read many streams for one wake-up; only what comes within one read of one stream has one stamp.
package epoll
