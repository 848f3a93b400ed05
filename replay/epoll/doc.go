// Package epoll exchanges HTTP/1.1 requests and answers over plain TCP on one thread of its own: epoll, non-blocking
// sockets, one read buffer for all of them, and some hundred bytes of state for each stream. It is for load tests, where
// net/http's two goroutines and buffers for each connection cost more than everything else. It knows nothing of what
// requests and answers mean. TLS, HTTP/2, proxies and redirects are not its business.
//
// A request goes out on the caller's own thread, so that nobody is waited for; answers are read by the loop.
//
//	Do                                    ┌──────────────── kept alive ───────────────┐
//	 │       no idle connection           ▼                                           │
//	 ├─────────────► resolve ─► connect ─►│                                           │
//	 │                  ▲          │      │   request written                         │
//	 │                  └── next ──┘      ├───────────────────► head ─► body ─► end ──┤
//	 └─► idle ────────────────────────────┘                       ▲ 1xx │       │     │
//	      ▲  closed before a byte was written: once more, from Do └─────┘       │     ▼
//	      └───────────────────────────────────────────────────────────────┘  │    idle, for IdleTimeout
//	                                                                   broken ▼
//	                                                             closed; the handler is told why
//
// What is HTTP and what is not is net/http's own word: heads are parsed by http.ReadResponse, and bodies are framed by the
// same rules and limits (fuzz tests hold the two to one reading). Connections are kept, retried and given up as net/http does.
//
// Stamps are the kernel's: when the last byte of a read arrived, however long it then waited for the thread. So the loop may let
// data gather for a moment (see pauser) without any figure changing, and reads many streams for one wake-up.
package epoll
